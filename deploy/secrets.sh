#!/bin/sh
# Makes the secrets that docker-compose.yml reads; what is there already is kept.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
make_secret() {
    [ -s "secrets/$1" ] || od -An -N 24 -tx1 /dev/urandom | tr -d ' \n' > "secrets/$1"
}
make_secret postgres_password
make_secret secret_key
make_secret admin_password
[ -s secrets/database_url ] ||
    printf 'postgres://gatehouse:%s@postgres:5432/gatehouse' "$(cat secrets/postgres_password)" > secrets/database_url
# The containers run as another user than the one who makes the files.
chmod 755 secrets
chmod 644 secrets/*
echo "The first admin is 'admin'; the password is in deploy/secrets/admin_password."
