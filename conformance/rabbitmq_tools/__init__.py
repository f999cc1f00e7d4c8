"""Tools of RabbitMQ that use the management API, unchanged, against Crosstie."""
