#!/bin/sh
# rustls-webpki 0.103.16 cannot read a list of revoked certificates (CRL) without extensions, which `openssl ca -gencrl`
# writes by default and `openssl crl` verifies. Such a list is of version 1, which RFC 5280 describes, though it asks
# authorities for version 2. The error is "could not be parsed", without the version. With `crlnumber` and
# `crl_extensions` in openssl's configuration the list can be read.
#
# Needs Rust, OpenSSL 3. Package: rustls-webpki 0.103.16 (crates.io).
# Seen on 2026-11-29.
set -eu
place=$(mktemp -d)
cd "$place"
trap 'rm -rf "$place"' EXIT
printf '[ca]\ndefault_ca = authority\n[authority]\ndatabase = index.txt\ndefault_md = sha256\ndefault_crl_days = 3\n' > ca.cnf
cp ca.cnf more.cnf
printf 'crlnumber = number\ncrl_extensions = list\n[list]\nauthorityKeyIdentifier = keyid\n' >> more.cnf
: > index.txt
echo 01 > number
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=authority \
    -addext keyUsage=keyCertSign,cRLSign -keyout ca.key -out ca.pem 2> openssl.log
for name in ca more; do
    openssl ca -config "$name.cnf" -gencrl -keyfile ca.key -cert ca.pem -out "$name.crl" 2>> openssl.log
    openssl crl -in "$name.crl" -CAfile ca.pem -noout 2>> openssl.log
    openssl crl -in "$name.crl" -outform DER -out "$name.der"
done
mkdir src
cat > Cargo.toml <<'TOML'
[package]
name = "read"
version = "0.0.0"
edition = "2021"
[dependencies]
rustls-webpki = "=0.103.16"
TOML
cat > src/main.rs <<'RUST'
fn main() {
    for path in std::env::args().skip(1) {
        let der = std::fs::read(&path).expect("a file");
        match webpki::OwnedCertRevocationList::from_der(&der) {
            Ok(_) => println!("{path}: read"),
            Err(why) => println!("{path}: {why:?}"),
        }
    }
}
RUST
cargo run -q -- ca.der more.der > found 2> cargo.log || { cat cargo.log; exit 1; }
cat found
grep -q '^ca.der: BadDer$' found
grep -q '^more.der: read$' found
