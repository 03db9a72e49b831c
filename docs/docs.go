// Package docs holds the pages of the documentation, so that "bowsprit docs" shows those of its own version. It is for
// that command alone, and no part of the API of this module.
package docs

import "embed"

// Pages are the Markdown files of this folder, of tutorials and of design.
//
//go:embed *.md tutorials/*.md design/*.md
var Pages embed.FS
