// Package docs embeds the pages of the documentation, so that "bowsprit docs" shows the pages of its own version. Only
// that command uses it; it is not part of the API of this module.
package docs

import "embed"

// Pages are the Markdown files of this folder, of tutorials, of design, and of the references of Go packages, and the
// pictures in plots.
//
//go:embed *.md tutorials/*.md design/*.md go/*.md plots/*.svg
var Pages embed.FS
