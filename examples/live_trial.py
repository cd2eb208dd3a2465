"""Two labs run one registered trial live: one of them dies in the middle and goes on, and both logs are verified.

Rewards come out of order and some never come. The labs share the registration and nothing else.
"""

import random
import tempfile

import banditto as bd


def work(url: str, registration: bd.Registration, users: random.Random, most: int = 10_000) -> None:
    """Ask and tell until there is nothing left to ask for, or until this lab dies after so many asks."""
    with bd.Experiment.open(url, "cta", registration) as trial:
        while most and (tickets := list(trial.ask(50))):
            most -= 1
            users.shuffle(tickets)
            if len(tickets) > 1:
                trial.missing(tickets.pop().id, "closed the window")
            trial.tell_many((ticket.id, float(users.random() < (0.3, 0.6)[ticket.arm])) for ticket in tickets)


def main() -> None:
    policy = bd.CertifiedElimination(arms=2, horizon=3_600, rho=0.2)
    protocol = policy.protocol(seed=7)
    registration = bd.Registration.of(protocol, arm_names=["old page", "new page"])
    with tempfile.TemporaryDirectory() as folder:
        zurich, delhi = (f"sqlite:///{folder}/{lab}.db" for lab in ("zurich", "delhi"))
        work(zurich, registration, random.Random(1), most=3)  # and then the lights go out
        work(zurich, registration, random.Random(2))
        work(delhi, registration, random.Random(3))
        for found in (bd.verify(lab, "cta") for lab in (zurich, delhi)):
            print(f"{found.events} events, {'verified' if found.holds else found.problem}")
        both = bd.replicate(f"{zurich}#cta", f"{delhi}#cta")
        print(f"The same {both.compared} decisions." if both.same else f"They differ: {both.divergence}")


if __name__ == "__main__":
    main()
