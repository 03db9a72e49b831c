// Package docs holds the pages of the documentation, so that "bowsprit docs" shows those of its own version. It is for
// that command alone, and no part of the API of this module.
package docs

import "embed"

// Pages are the Markdown files of this folder, of tutorials, of design, and of the references of Go packages, and the
// pictures in plots.
//
//go:embed *.md tutorials/*.md design/*.md go/*.md plots/*.svg
var Pages embed.FS
