"""What is measured of a policy: certify, compare, attack, calibrate, plan, replay, golden digests; lower bounds."""
