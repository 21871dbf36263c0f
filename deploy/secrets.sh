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
# Clusters' credentials are sealed with the public key; the worker alone has the private one.
[ -s secrets/seal_private_keys ] ||
    openssl genpkey -algorithm X25519 -out secrets/seal_private_keys
[ -s secrets/seal_public_keys ] ||
    openssl pkey -in secrets/seal_private_keys -pubout -out secrets/seal_public_keys
# The containers run as another user than the one who makes the files.
chmod 755 secrets
chmod 644 secrets/*
echo "The first admin is 'admin'; the password is in deploy/secrets/admin_password."
