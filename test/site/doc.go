// Package site holds the static documentation (make docs) to what its readers need, in headless Chromium: no violation
// that axe-core finds, dark or light; nothing to scroll sideways on a phone; everything to be reached by keys. make
// docs-test runs it, with the folder of the pages in DOCS_SITE and the file axe.min.js in AXE.
package site
