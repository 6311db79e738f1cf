"""What several families use, and no other hook needs. Nothing here knows a family."""
