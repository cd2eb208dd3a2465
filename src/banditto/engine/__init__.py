"""Executions: `batched` and `rounds` run one block of pairs, `blocks` runs many blocks on any executor."""
