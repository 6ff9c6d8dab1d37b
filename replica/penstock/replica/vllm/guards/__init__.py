"""What one request may ask for: refused by the field that asks for too much, or set back."""
