"""Measures Penstock from outside, as its clients see it: over HTTP, and by what processes spend.

Never imports control, replica, penstock.v1 or grpc. What must run is started by command line.
"""
