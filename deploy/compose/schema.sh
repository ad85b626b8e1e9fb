#!/bin/sh
# Creates and updates Temporal's two databases; safe to run again.
set -eu
SQL_PASSWORD=$(cat /run/secrets/postgres_password)
export SQL_PASSWORD

setup() {
  database=$1
  versions=$2
  tool="temporal-sql-tool --plugin $DB --ep $POSTGRES_SEEDS --port $DB_PORT --user $POSTGRES_USER --db $database"
  $tool create
  $tool setup-schema -v 0.0
  $tool update-schema -d "/etc/temporal/schema/postgresql/v12/$versions/versioned"
}

setup "$DBNAME" temporal
setup "$VISIBILITY_DBNAME" visibility
