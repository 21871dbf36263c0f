"""What REST lists of all apps select: filters, order, labels, pages, members. No view, no model."""
