"""What shares a system whose requests are explained, which ends with the last of these tests."""
