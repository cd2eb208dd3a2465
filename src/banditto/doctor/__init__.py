"""A self-test for regulated use: does this machine decide as every other one does?"""
