"""What is measured of a policy: certify, compare and study files, attack, calibrate, plan, replay, golden digests."""
