"""What is measured of a policy: certificates, comparisons, attacks, calibration, plans, replays."""
