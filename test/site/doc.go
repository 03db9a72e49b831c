// Package site tests the static documentation (make docs) in headless Chromium: axe-core finds no violations, dark or
// light; a phone needs no sideways scrolling; everything can be reached by keyboard. make docs-test runs it, with the
// folder of the pages in DOCS_SITE and the file axe.min.js in AXE.
package site
