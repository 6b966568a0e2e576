#!/bin/sh
# Installs Canonry from a release: downloads the archive for this system, checks its SHA-256, copies the program.
#
#   curl -fsSL https://github.com/canonry/canonry/releases/latest/download/install.sh | sh
#
# CANONRY_VERSION       a release such as v0.1.0; the latest one if it is not set
# CANONRY_INSTALL_DIR   where the program goes; ~/.local/bin if it is not set
# CANONRY_RELEASES_URL  a mirror of the releases page
#
# The sums come from the same place as the archive: they show a broken download. To check who built it:
#   gh attestation verify ARCHIVE --repo canonry/canonry
set -eu

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

detect_target() {
  case "$(uname -m)" in
    x86_64 | amd64) processor=x86_64 ;;
    aarch64 | arm64) processor=aarch64 ;;
    *) fail "there is no program for the processor $(uname -m). Build it: cargo install --locked canonry" ;;
  esac
  case "$(uname -s)" in
    Linux) echo "$processor-unknown-linux-musl" ;;
    Darwin) echo "$processor-apple-darwin" ;;
    *) fail "there is no archive for $(uname -s). On Windows: pip install canonry" ;;
  esac
}

download() {
  if command -v curl > /dev/null; then
    curl --fail --silent --show-error --location --output "$2" "$1" || fail "could not download $1"
  elif command -v wget > /dev/null; then
    wget --quiet --output-document "$2" "$1" || fail "could not download $1"
  else
    fail "curl or wget is needed to download $1"
  fi
}

sum_of() {
  if command -v sha256sum > /dev/null; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif command -v shasum > /dev/null; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  else
    fail "sha256sum or shasum is needed to check the download"
  fi
}

main() {
  releases="${CANONRY_RELEASES_URL:-https://github.com/canonry/canonry/releases}"
  if [ -n "${CANONRY_VERSION:-}" ]; then
    from="$releases/download/$CANONRY_VERSION"
  else
    from="$releases/latest/download"
  fi
  folder="${CANONRY_INSTALL_DIR:-$HOME/.local/bin}"
  target="$(detect_target)"
  work="$(mktemp -d)"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM

  # The list of sums also says the archive's name, and with it the version.
  download "$from/SHA256SUMS" "$work/SHA256SUMS"
  line="$(grep -- "  canonry-v[0-9A-Za-z.-]*-$target\.tar\.gz\$" "$work/SHA256SUMS" || true)"
  [ -n "$line" ] || fail "the release at $from has no archive for $target"
  wanted="${line%% *}"
  archive="${line##* }"
  download "$from/$archive" "$work/$archive"
  found="$(sum_of "$work/$archive")"
  [ "$found" = "$wanted" ] || fail "$archive is damaged: its SHA-256 is $found, not $wanted. Try again."

  tar -xzf "$work/$archive" -C "$work"
  mkdir -p "$folder"
  # A running program cannot be overwritten, but its file can be replaced.
  cp "$work/${archive%.tar.gz}/canonry" "$folder/.canonry.new"
  chmod 755 "$folder/.canonry.new"
  mv -f "$folder/.canonry.new" "$folder/canonry"
  echo "installed $("$folder/canonry" -V) as $folder/canonry"
  case ":$PATH:" in
    *":$folder:"*) ;;
    *) echo "$folder is not in your PATH; add it: export PATH=\"$folder:\$PATH\"" ;;
  esac
}

# At the end, so that half a download of this script does nothing.
main
