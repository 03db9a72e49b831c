package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/manual"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/site"
	"github.com/bowsprit/bowsprit/docs"
)

var (
	hrefs = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	ids   = regexp.MustCompile(` id="([^"]*)"`)
)

// TestDocsSite checks that every link of every page leads to a page of the site, and to a heading there, or to another
// site.
func TestDocsSite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := command(t, "docs", "--write", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pages := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(dir, file)
			pages[filepath.ToSlash(name)] = read(t, file)
		}
		return err
	})
	if err != nil || len(pages) < 40 || !strings.Contains(pages["commands.html"], "--secure-port") {
		t.Fatalf("%d files, %v", len(pages), err)
	}
	followed := 0
	for name, text := range pages {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		base, _ := url.Parse("http://site/" + name)
		for _, m := range hrefs.FindAllStringSubmatch(text, -1) {
			to, err := base.Parse(m[1])
			if err != nil || to.Host != "site" {
				continue
			}
			followed++
			target, there := pages[strings.TrimPrefix(to.Path, "/")]
			if !there {
				t.Errorf("%s links to %s, which is not there", name, m[1])
				continue
			}
			found := to.Fragment == ""
			for _, id := range ids.FindAllStringSubmatch(target, -1) {
				found = found || id[1] == to.Fragment
			}
			if !found {
				t.Errorf("%s links to %s: no such heading", name, m[1])
			}
		}
	}
	if followed < 1000 {
		t.Errorf("only %d links", followed)
	}
}

func TestDocsServed(t *testing.T) {
	t.Parallel()
	pages, err := site.New(docs.Pages, map[string]string{
		"index": startPage, "commands": manual.Markdown(rootCommand()),
	})
	if err != nil {
		t.Fatal(err)
	}
	handler := siteHandler(pages)
	for path, want := range map[string]struct {
		code int
		kind string
	}{
		"/": {http.StatusOK, "text/html"}, "/design/view.html": {http.StatusOK, "text/html"},
		"/style.css": {http.StatusOK, "text/css"}, "/search.json": {http.StatusOK, "application/json"},
		"/plots/aggregation.svg": {http.StatusOK, "image/svg+xml"},
		"/none.html":             {http.StatusNotFound, "text/plain"},
		"/../go.mod":             {http.StatusNotFound, "text/plain"},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if w.Code != want.code || !strings.HasPrefix(w.Header().Get("Content-Type"), want.kind) {
			t.Errorf("%s: %d %s", path, w.Code, w.Header())
		}
	}
}
