# Functions that fetch the source of PostgreSQL $PG from the mirror this machine's own apt uses;
# /etc/apt and apt's lists are not touched. Read after lib.sh.

# Lines of release, component and address: what apt's own sources name.
apt_indexes() { apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Identifier: Packages'; }
own_release() { . /etc/os-release && echo "$VERSION_CODENAME"; }
mirror() { apt_indexes | awk -v name="$(own_release)" '$1 == name && $2 == "main" && !found++ { print $3 }'; }

# Mirror and release of the source package, in apt's form. 15 is the machine's own release's,
# security updates included.
source_releases() { # MIRROR
  case $PG in
    15) apt_indexes | awk -v name="$(own_release)" '$2 == "main" && index($1, name) == 1 { print $3, $1 }' | sort -u ;;
    17) echo "$1 trixie" ;;
    18) echo "$1 sid" ;;
    *) echo "PG=$PG: 15, 17 and 18 are known" >&2; exit 2 ;;
  esac
}

fetch_source() { # into the current directory
  local mirror releases apt version
  mirror=$(mirror)
  if [ -z "$mirror" ]; then echo "apt's sources name no mirror of Debian" >&2; exit 1; fi
  releases=$(source_releases "$mirror")
  apt=$PWD/apt
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  sed 's/.*/deb-src & main/' <<<"$releases" > "$apt/sources.list"
  local options=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=$apt/none"
    -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update
  # Days pass in which a mirror lists a version and has but the one before it.
  for version in $(apt-cache "${options[@]}" showsrc --only-source "postgresql-$PG" | awk '/^Version:/ { print $2 }' | sort -ruV); do
    if apt-get "${options[@]}" source --download-only "postgresql-$PG=$version"; then
      dpkg-source --extract postgresql-"$PG"_*.dsc source
      return
    fi
    rm -f postgresql-"$PG"_*
  done
  fetch_known "$mirror" ||
    { echo "the mirror has neither a source package of PostgreSQL $PG that it lists nor the known one" >&2; exit 1; }
  dpkg-source --extract postgresql-"$PG"_*.dsc source
}

# The version below, by its own checksums.
fetch_known() { # MIRROR; into the current directory
  local version sum pool file
  case $PG in
    15) version=15.18-0+deb12u1 sum=d940b57dd029ef0712212164410fcb51854c883f3fc0c3a11486acdfd2ca5947 ;;
    17) version=17.11-0+deb13u1 sum=bf148ae423a982707c3f60672c3a072ef62b701bd9f5df847d9f4b8c9b3e3b18 ;;
    18) version=18.6-3 sum=a4254c4548ebeea683832de193460ee8a9f1271418e884803b44ded1aead1776 ;;
  esac
  pool=${1%/}/pool/main/p/postgresql-$PG
  # What the description lists, dpkg-source verifies.
  fetch_file "$pool/postgresql-${PG}_$version.dsc" "SHA256:$sum" || return 1
  for file in $(awk '/^Checksums-Sha256:/ { inside = 1; next } /^[^ ]/ { inside = 0 } inside { print $3 }' postgresql-"$PG"_"$version".dsc); do
    fetch_file "$pool/$file" || return 1
  done
}

fetch_file() { # URL [CHECKSUM]
  /usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "$1" "${1##*/}" ${2:+"$2"}
}
