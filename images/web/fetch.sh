#!/bin/sh
# fetch.sh NAME VERSION SHA512: unpacks a package of the npm registry into /tools/NAME.
# apt downloads and verifies it: that is what this image has for both, proxies and certificates included.
set -eu
registry=$(node --input-type=module --eval 'import url from "registry-url"; console.log(url())')
/usr/lib/apt/apt-helper download-file "$registry$1/-/$1-$2.tgz" /tmp/package.tgz "SHA512:$3"
mkdir -p "/tools/$1"
tar --extract --file /tmp/package.tgz --directory "/tools/$1" --strip-components=1
