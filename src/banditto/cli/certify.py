"""`banditto certify`: measure how often two executions make the same decisions."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, NamedTuple

import typer

from banditto.cli import logs, parameters
from banditto.cli.output import (
    EXIT_CHECK,
    EXIT_INTERRUPTED,
    EXIT_OK,
    collected_warnings,
    notices,
    output_directory,
    print_json,
    print_warnings,
    progress_bar,
    write_together,
)
from banditto.cli.problems import problem_of
from banditto.cli.workers import Workers
from banditto.core.errors import InvalidArgument
from banditto.core.exact import open_unit
from banditto.core.provenance import provenance
from banditto.engine.ledger import FILE_NAME
from banditto.geometry.actions.choosing import read_actions
from banditto.policies.policy import AnyPolicy
from banditto.problems.environment import Environment

FILES = ("certificate.json", "protocol.toml")
UntilSettled = Annotated[
    bool,
    typer.Option("--until-settled", help="Go on until PASS or FAIL; --pairs is then the limit (default: 1e7)."),
]


Gpu = Annotated[bool, typer.Option("--gpu", help="Play on a GPU, in blocks of four million pairs.")]


def certify(
    policy: parameters.PolicyArgument,
    means: parameters.Means = None,
    theta: parameters.Theta = None,
    actions: parameters.Actions = None,
    action_set: parameters.ActionSetOption = None,
    dimension: parameters.Dimension = None,
    normalise: parameters.Normalise = False,
    log: logs.Log = None,
    arm_column: logs.ArmColumn = None,
    reward_column: logs.RewardColumn = None,
    reward_range: logs.RewardRange = None,
    horizon: parameters.Horizon = None,
    rho: parameters.Rho = None,
    gap: parameters.Gap = None,
    pairs: parameters.Pairs = None,
    until_settled: UntilSettled = False,
    environment: parameters.EnvironmentOption = None,
    seed: parameters.Seed = None,
    noise_seed: parameters.NoiseSeed = None,
    confidence: parameters.Confidence = None,
    jobs: parameters.Jobs = None,
    cluster: parameters.Cluster = None,
    gpu: Gpu = False,
    out: parameters.Out = None,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Play pairs of executions that share coins but not rewards, and count how many are the same.

    Exit code 0 when the policy passes at this rho, 3 when it fails or more pairs are needed. With --out a run that was
    stopped goes on where it was, and one with more pairs adds to what is there.
    """
    from banditto.measure import certify as certification  # numerical libraries are loaded once there is work for them
    from banditto.problems.environments.resampled import Resampled

    workers = Workers.of(jobs, cluster, gpu)
    with collected_warnings() as warnings:
        flags = logs.LogFlags(log, arm_column, reward_column, reward_range)
        world = _World(means, theta, actions, action_set, dimension, normalise, environment, flags)
        problem = problem_of(policy, world, horizon, rho, seed, gap)
    if not quiet and not as_json:
        print_warnings(warnings)
    with output_directory(parameters.folder(out), (*FILES, FILE_NAME)) as folder:
        try:
            with notices(quiet), workers.opened() as executor, progress_bar("certify", quiet) as progress:
                certificate = certification.certify(
                    problem.policy,
                    problem.environment,
                    horizon=problem.horizon,
                    rho=problem.rho,
                    seed=problem.seed,
                    noise_seed=None if noise_seed is None else parameters.count(noise_seed, "noise_seed"),
                    pairs=None if pairs is None else parameters.count(pairs, "pairs"),
                    until_settled=until_settled,
                    out=folder,
                    confidence=0.95 if confidence is None else open_unit(confidence, "confidence"),
                    backend="cupy" if gpu else "numpy",
                    jobs=workers.jobs,
                    executor=executor,
                    progress=progress,
                )
        except KeyboardInterrupt:
            what = "nothing to report"
            if folder is not None and (folder / FILE_NAME).exists():
                what = "finished pairs are kept, and the same command goes on from there"
            sys.stderr.write(f"banditto: interrupted before there was a result; {what}\n")
            raise
        content = certificate.to_dict() | {"warnings": warnings} | provenance()
        if folder is not None:
            texts = json.dumps(content, indent=2, allow_nan=False) + "\n", certificate.protocol.to_toml()
            write_together(folder, dict(zip(FILES, texts, strict=True)))
    if as_json:
        print_json(content)
    else:
        sys.stdout.write(certificate.table() + "\n")
        if isinstance(problem.environment, Resampled):
            sys.stdout.write(f"\n{problem.environment.table()}\n")
    if certificate.interrupted:
        kept = f"the result is that of --pairs {certificate.pairs}, and the same command runs all pairs"
        if folder is not None:
            kept = f"{certificate.pairs:,} pairs are kept, and the same command goes on from there"
        sys.stderr.write(f"banditto: interrupted; {kept}\n")
        return EXIT_INTERRUPTED
    return EXIT_OK if certificate.verdict == "PASS" else EXIT_CHECK


class _World(NamedTuple):
    """The flags that say where rewards come from."""

    means: str | None
    theta: str | None
    actions: str | None
    action_set: str | None
    dimension: str | None
    normalise: bool
    environment: str | None
    logged: logs.LogFlags

    def built(self, own: AnyPolicy | None = None) -> Environment:
        """The environment; the actions of a protocol's own policy need not be named again."""
        from banditto.policies.catalogue import build_environment, build_linear_environment

        if self.logged.given:
            return self._resampled()
        kind = self.environment or "bernoulli"
        fixed: Any = getattr(own, "actions", None)
        named = {name: getattr(self, name) for name in ("theta", "actions", "action_set", "dimension")}
        named = {name: value for name, value in named.items() if value is not None}
        if self.normalise:
            named["normalise"] = "it"
        if fixed is not None and self.theta is None:
            raise InvalidArgument("theta", "nothing", "the parameter, which no protocol holds")
        if not named:
            return build_environment(kind, None if self.means is None else parameters.numbers(self.means, "means"))
        if self.means is not None and self.theta is None:
            name, value = next(iter(named.items()))
            raise InvalidArgument(name, value, "none: that is for linear problems, which have theta and no means")
        if self.means is not None:
            raise InvalidArgument("means", self.means, "none, because a linear problem has theta and actions")
        features = None if self.dimension is None else parameters.count(self.dimension, "dimension")
        if fixed is not None and not (self.actions or self.action_set) and (self.dimension or self.normalise):
            name = "normalise" if self.normalise else "dimension"
            raise InvalidArgument(name, named[name], "none, because the protocol has its own actions")
        if fixed is None or self.actions is not None or self.action_set is not None:
            fixed = read_actions(self.actions, self.normalise, self.action_set, features)
        theta = None if self.theta is None else parameters.numbers(self.theta, "theta")
        return build_linear_environment(kind, theta, fixed)

    def _resampled(self) -> Environment:
        """The rows of a log, which brings everything that other environments are told."""
        from banditto.problems.environments.resampled import Resampled

        names = ("means", "environment", "theta", "actions", "action_set", "dimension", "normalise")
        for name in names if self.logged.log is not None else ():
            if getattr(self, name):
                given = "it" if name == "normalise" else getattr(self, name)
                raise InvalidArgument(name, given, "none, because the log has its own arms and rewards")
        return Resampled(self.logged.read())
