package site

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode"

	"github.com/russross/blackfriday/v2"
)

// render renders a page as HTML. Links to pages stay on the site, links to other files lead to the repository.
func render(p *page) []byte {
	parser := blackfriday.New(blackfriday.WithExtensions(blackfriday.CommonExtensions &^ blackfriday.Autolink))
	tree := parser.Parse(p.text)
	tree.Walk(func(n *blackfriday.Node, entering bool) blackfriday.WalkStatus {
		switch {
		case !entering:
		case n.Type == blackfriday.Heading:
			n.HeadingID = anchor(textOf(n))
		case n.Type == blackfriday.Link:
			n.Destination = []byte(target(p.name, string(n.Destination)))
		}
		return blackfriday.GoToNext
	})
	r := &tables{HTMLRenderer: blackfriday.NewHTMLRenderer(blackfriday.HTMLRendererParameters{})}
	var b bytes.Buffer
	tree.Walk(func(n *blackfriday.Node, entering bool) blackfriday.WalkStatus { return r.RenderNode(&b, n, entering) })
	return b.Bytes()
}

// tables puts wide content into boxes that scroll by themselves, also by keyboard, because a phone is narrow.
type tables struct {
	*blackfriday.HTMLRenderer
	boxes int // of tables so far: each needs a name that no other on the page has
}

func (r *tables) RenderNode(w io.Writer, n *blackfriday.Node, entering bool) blackfriday.WalkStatus {
	switch n.Type {
	case blackfriday.Table:
		if entering {
			r.boxes++
			_, _ = fmt.Fprintf(w, `<div class="wide" tabindex="0" role="region" aria-label="Table %d">`, r.boxes)
			return r.HTMLRenderer.RenderNode(w, n, entering)
		}
		status := r.HTMLRenderer.RenderNode(w, n, entering)
		_, _ = io.WriteString(w, "</div>")
		return status
	case blackfriday.TableCell: // an empty corner of a table is not a heading
		n.IsHeader = n.IsHeader && textOf(n) != ""
	case blackfriday.CodeBlock:
		var b bytes.Buffer
		status := r.HTMLRenderer.RenderNode(&b, n, entering)
		_, _ = w.Write(bytes.Replace(b.Bytes(), []byte("<pre>"), []byte(`<pre tabindex="0">`), 1))
		return status
	}
	return r.HTMLRenderer.RenderNode(w, n, entering)
}

// target is where a link of a page leads on the site.
func target(from, to string) string {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "#") || strings.HasPrefix(to, "mailto:") {
		return to
	}
	file, fragment, _ := strings.Cut(to, "#")
	if fragment != "" {
		fragment = "#" + fragment
	}
	switch full := path.Join("docs", path.Dir(from), file); {
	case full == "README.md":
		return strings.Repeat("../", strings.Count(from, "/")) + "index.html" + fragment
	case strings.HasPrefix(full, "docs/") && strings.HasSuffix(file, ".md"):
		return strings.TrimSuffix(file, ".md") + ".html" + fragment
	default:
		return repository + full + fragment
	}
}

func textOf(n *blackfriday.Node) string {
	var b strings.Builder
	n.Walk(func(n *blackfriday.Node, entering bool) blackfriday.WalkStatus {
		if entering {
			b.Write(n.Literal)
		}
		return blackfriday.GoToNext
	})
	return b.String()
}

// anchor is the name that GitHub gives to a heading, so that links work there and here.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(heading))
}
