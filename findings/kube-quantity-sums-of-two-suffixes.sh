#!/bin/sh
# kube_quantity 0.9.0 with k8s-openapi 0.26.0 (Rust), "adding arithmetic operations to the Quantity type": sums of quantities that
# are written in two ways, as where a pod's memory is in Gi and a sidecar's in bytes.
# Behaviour: two with one kind of suffix are added exactly. One byte and 1Gi are 176 bytes too many, and 1Gi and 100m (as the API
# server writes a tenth) are 1024 times what they are, without an error. 1Ei, which is a valid quantity, is an error. One would
# have guessed whole bytes, as Go adds them; a quota that is summed up so is not full, or full at once.
# Output seen: 1Gi + 1Mi: 1025Mi; 1 + 1Gi: 1073742001; 1Gi + 100m: 1099511627878.40001; 1Gi + 1G: 1.9313226Gi; 1Ei: error
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export CARGO_TARGET_DIR="$folder/target"
mkdir src
cat > Cargo.toml <<'TOML'
[package]
name = "finding"
version = "1.0.0"
edition = "2021"

[dependencies]
k8s-openapi = { version = "=0.26.0", features = ["v1_33"] }
TOML
cat > src/main.rs <<'RUST'
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube_quantity::ParsedQuantity;

fn sum(texts: &[&str]) -> String {
    let mut sum: Option<ParsedQuantity> = None;
    for text in texts {
        match ParsedQuantity::try_from(Quantity(text.to_string())) {
            Ok(quantity) => sum = Some(sum.map_or(quantity.clone(), |so_far| so_far + quantity)),
            Err(_) => return "error".to_string(),
        }
    }
    Quantity::from(sum.unwrap()).0
}

fn main() {
    for texts in [&["1Gi", "1Mi"][..], &["1", "1Gi"], &["1Gi", "100m"], &["1Gi", "1G"], &["1Ei"]] {
        println!("{}: {}", texts.join(" + "), sum(texts));
    }
}
RUST
cargo generate-lockfile --quiet
echo 'kube_quantity = "=0.9.0"' >> Cargo.toml  # it takes any k8s-openapi, so the one that is locked
seen=$(cargo run --quiet 2> /dev/null)
wanted='1Gi + 1Mi: 1025Mi
1 + 1Gi: 1073742001
1Gi + 100m: 1099511627878.40001
1Gi + 1G: 1.9313226Gi
1Ei: error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
