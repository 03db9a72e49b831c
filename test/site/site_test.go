package site

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// phone is the width of a small phone in CSS pixels; desk is the width of a desktop window.
const phone, desk = 360, 1280

// limit ends tests that hang; it measures nothing.
const limit = 30 * time.Minute

// browser starts Chromium and a server of the pages, and returns a tab and the address of the pages.
func browser(t *testing.T) (context.Context, string) {
	t.Helper()
	dir := os.Getenv("DOCS_SITE")
	if dir == "" {
		t.Skip("DOCS_SITE is not set: make docs-test sets it")
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(limit))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("Chromium does not start: %v", err)
	}
	return ctx, server.URL + "/"
}

// pages returns the paths of all pages.
func pages(t *testing.T) (all []string) {
	t.Helper()
	dir := os.Getenv("DOCS_SITE")
	err := filepath.WalkDir(dir, func(file string, e os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".html") {
			name, _ := filepath.Rel(dir, file)
			all = append(all, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil || len(all) < 50 {
		t.Fatalf("%d pages in %s: %v", len(all), dir, err)
	}
	return all
}

func window(width int64) chromedp.Action { return chromedp.EmulateViewport(width, 800) }

// colors sets the preferred color scheme, dark or light.
func colors(scheme string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme},
	})
}

func promised(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// findings are axe's violations in the open page, one per line.
const findings = `axe.run().then(r => r.violations.flatMap(v => v.nodes.slice(0, 3).map(n =>
	v.id + ": " + n.target.join(" ") + ": " + n.failureSummary.replace(/\s+/g, " "))))`

// TestAxe checks every page with axe-core, dark and light.
func TestAxe(t *testing.T) {
	ctx, address := browser(t)
	axe, err := os.ReadFile(os.Getenv("AXE"))
	if err != nil {
		t.Fatalf("AXE names the file axe.min.js of axe-core: %v", err)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, name := range pages(t) {
			var found []string
			var background string
			err := chromedp.Run(ctx, colors(scheme), window(desk), chromedp.Navigate(address+name),
				chromedp.Evaluate(string(axe)+";0", nil), chromedp.Evaluate(findings, &found, promised),
				chromedp.Evaluate(`getComputedStyle(document.body).backgroundColor`, &background))
			if err != nil {
				t.Fatalf("%s, %s: %v", name, scheme, err)
			}
			if dark := background != "rgb(255, 255, 255)"; dark != (scheme == "dark") {
				t.Errorf("%s, %s: the background is %s", name, scheme, background)
			}
			for _, f := range found {
				t.Errorf("%s, %s: %s", name, scheme, f)
			}
		}
	}
}

// wide are the elements that extend beyond the window, except in boxes that scroll by themselves.
const wide = `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
	.filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest("pre, .wide"))
	.slice(0, 5).map(e => e.tagName + " " + e.textContent.trim().slice(0, 60)).concat("the page scrolls sideways")`

// TestPhone opens every page on a phone: only code and tables scroll sideways, in their boxes.
func TestPhone(t *testing.T) {
	ctx, address := browser(t)
	for _, name := range pages(t) {
		var found []string
		err := chromedp.Run(ctx, window(phone), chromedp.Navigate(address+name), chromedp.Evaluate(wide, &found))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, f := range found {
			t.Errorf("%s: %s", name, f)
		}
	}
}

// focused returns the focused element, and whether the focus is visible.
const focused = `(() => {
	const e = document.activeElement, r = e.getBoundingClientRect();
	return (e.id || e.className || e.tagName) + (r.right > 0 && r.bottom > 0 ? "" : " out of sight");
})()`

// TestKeyboard navigates a page by keyboard only.
func TestKeyboard(t *testing.T) {
	ctx, address := browser(t)
	press := func(key string) string {
		t.Helper()
		var now string
		if err := chromedp.Run(ctx, chromedp.KeyEvent(key), chromedp.Evaluate(focused, &now)); err != nil {
			t.Fatal(err)
		}
		return now
	}
	open := func(width int64) {
		t.Helper()
		if err := chromedp.Run(ctx, window(width), chromedp.Navigate(address+"index.html")); err != nil {
			t.Fatal(err)
		}
	}
	for _, width := range []int64{desk, phone} {
		open(width)
		for _, want := range []string{"skip", "home", "search"} {
			if got := press(kb.Tab); got != want {
				t.Errorf("%d pixels: the focus is on %s, want %s", width, got, want)
			}
		}
		open(width)
		press(kb.Tab)
		if got := press(kb.Enter); got != "content" {
			t.Errorf("%d pixels: the skip link leads to %s", width, got)
		}
	}
	open(phone)
	for range 4 {
		press(kb.Tab)
	}
	var shown bool
	err := chromedp.Run(ctx, chromedp.KeyEvent(kb.Enter),
		chromedp.Evaluate(`document.querySelector("nav details").open`, &shown))
	if err != nil || !shown {
		t.Errorf("the pages are not shown by keys on a phone: %v", err)
	}
}

// outline returns the style of the focused element.
const outline = `getComputedStyle(document.activeElement).outlineStyle + " " + document.activeElement.tagName`

// TestSearch searches for a word by keyboard, and follows the first result.
func TestSearch(t *testing.T) {
	ctx, address := browser(t)
	var hits, outlined, url string
	err := chromedp.Run(ctx, window(desk), chromedp.Navigate(address+"tutorials/users.html"),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab),
		chromedp.KeyEvent("konnectivity agents"), chromedp.WaitVisible("#found a"),
		chromedp.Text("#found a", &hits), chromedp.KeyEvent(kb.Tab),
		chromedp.Evaluate(outline, &outlined),
		chromedp.KeyEvent(kb.Enter), chromedp.WaitReady(`//h1[contains(., "Konnectivity") or contains(., "proxy")]`),
		chromedp.Location(&url))
	if err != nil {
		t.Fatalf("%v (found %q, focus %q)", err, hits, outlined)
	}
	if outlined != "solid A" || !strings.Contains(url, "onnectivity") {
		t.Errorf("found %q, the focus is on %q, and Enter leads to %s", hits, outlined, url)
	}
}
