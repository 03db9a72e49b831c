// Package site makes web pages of the documentation: static files, or a server for them on this machine. It renders a
// page on request from the Markdown in the program, and keeps no generated files.
package site

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

const repository = "https://github.com/bowsprit/bowsprit/blob/main/"

//go:embed page.html
var layout string

//go:embed style.css
var style []byte

//go:embed search.js
var search []byte

// sections are the navigation, in the order of tasks. Pages missing here are listed under "How it works".
var sections = []struct {
	title string
	pages []string
}{
	{"Begin", []string{"index", "quickstart", "first-steps", "packages", "journeys", "chart", "settings", "comparison",
		"why", "troubleshooting", "faq"}},
	{"Tutorials", []string{"tutorials/definitions", "tutorials/versions", "tutorials/conversion-rules",
		"tutorials/extension-server",
		"tutorials/schedulers", "tutorials/proxies", "tutorials/konnectivity", "tutorials/clients", "tutorials/users",
		"tutorials/replicas", "tutorials/backup", "tutorials/move", "tutorials/test-an-operator"}},
	{"Tasks", []string{"operations", "high-availability", "backup", "encryption", "security", "sensitive-fields",
		"envtest", "run-as-pod", "workloads",
		"controllers", "nodes", "schedulers", "kubelet", "aggregation", "extension", "ways-in", "konnectivity"}},
	{"Reference", []string{"commands", "command-errors", "output", "metrics", "errors", "go/bowsprit", "go/testserver",
		"go/extension", "differences", "conformance", "performance", "following-kubernetes"}},
	{"How it works", []string{"tour", "request", "concurrency", "schema", "house", "releasing"}},
}

// Site is all pages.
type Site struct {
	pages map[string]*page  // by name, without ".html"
	plots map[string][]byte // pictures, by path
	nav   []section
	frame *template.Template
}

type page struct {
	name, title string
	text        []byte // Markdown
}

type section struct {
	Title string
	Pages []link
}

type link struct{ Title, Name string }

// New reads the pages of a folder and its subfolders. extra has further pages by name: the start page is "index".
func New(folder fs.FS, extra map[string]string) (*Site, error) {
	s := &Site{pages: map[string]*page{}, plots: map[string][]byte{}}
	var err error
	if s.frame, err = template.New("page").Parse(layout); err != nil {
		return nil, err
	}
	err = fs.WalkDir(folder, ".", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(folder, file)
		if path.Ext(file) == ".svg" {
			s.plots[file] = text
			return err
		}
		s.add(strings.TrimSuffix(file, ".md"), text)
		return err
	})
	if err != nil {
		return nil, err
	}
	for name, text := range extra {
		s.add(name, []byte(text))
	}
	s.navigate()
	return s, nil
}

func (s *Site) add(name string, text []byte) {
	title := name
	if first, _, _ := bytes.Cut(text, []byte("\n")); bytes.HasPrefix(first, []byte("# ")) {
		title = string(first[2:])
	}
	s.pages[name] = &page{name, title, text}
}

// navigate puts each page into one section.
func (s *Site) navigate() {
	placed := map[string]bool{}
	for _, part := range sections {
		entry := section{Title: part.title}
		for _, name := range part.pages {
			if p := s.pages[name]; p != nil {
				placed[name] = true
				entry.Pages = append(entry.Pages, link{p.title, name})
			}
		}
		s.nav = append(s.nav, entry)
	}
	last := &s.nav[len(s.nav)-1]
	for _, name := range s.names() {
		if !placed[name] {
			last.Pages = append(last.Pages, link{s.pages[name].title, name})
		}
	}
}

func (s *Site) names() (names []string) {
	for name := range s.pages {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Files are the paths of all files.
func (s *Site) Files() []string {
	files := []string{"style.css", "search.js", "search.json"}
	for _, name := range s.names() {
		files = append(files, name+".html")
	}
	return slices.Concat(files, slices.Sorted(maps.Keys(s.plots)))
}

// File returns a file, or an error of fs.ErrNotExist.
func (s *Site) File(name string) ([]byte, error) {
	switch name {
	case "style.css":
		return style, nil
	case "search.js":
		return search, nil
	case "search.json":
		return s.index()
	}
	if plot := s.plots[name]; plot != nil {
		return plot, nil
	}
	p := s.pages[strings.TrimSuffix(name, ".html")]
	if p == nil || path.Ext(name) != ".html" {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	var b bytes.Buffer
	err := s.frame.Execute(&b, map[string]any{
		"Title": p.title, "Name": p.name, "Root": strings.Repeat("../", strings.Count(p.name, "/")), "Sections": s.nav,
		"Body": template.HTML(render(p)),
	})
	return b.Bytes(), err
}

// index returns the data for the search: the text of each page under each of its headings.
func (s *Site) index() ([]byte, error) {
	type part struct {
		Page  string `json:"page"`
		Title string `json:"title"`
		Text  string `json:"text"`
	}
	var parts []part
	for _, name := range s.names() {
		p := s.pages[name]
		current := part{name + ".html", p.title, ""}
		for line := range strings.Lines(string(p.text)) {
			if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
				parts = append(parts, current)
				heading = strings.TrimSpace(heading)
				current = part{name + ".html#" + anchor(heading), p.title + ": " + heading, ""}
				continue
			}
			current.Text += line
		}
		parts = append(parts, current)
	}
	parts = slices.DeleteFunc(parts, func(p part) bool { return strings.TrimSpace(p.Text) == "" })
	for i := range parts {
		parts[i].Text = html.UnescapeString(strings.Join(strings.Fields(parts[i].Text), " "))
	}
	return json.Marshal(parts)
}
