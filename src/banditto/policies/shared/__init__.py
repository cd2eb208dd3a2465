"""What several policies share: checked arguments, the race of arms, the quantities of the proofs."""
