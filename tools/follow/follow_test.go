package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the report into testdata")

// unpack writes the files of a text in testdata into a folder. "-- path --" begins a file.
func unpack(t *testing.T, name string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(text), "\n-- ")[1:] {
		path, content, _ := strings.Cut(part, " --\n")
		file := filepath.Join(folder, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// fixture returns the modules of a release in testdata.
func fixture(t *testing.T, release string) tree {
	t.Helper()
	folder, all := unpack(t, release), tree{}
	for _, name := range append([]string{"kubernetes"}, staging...) {
		all[name] = filepath.Join(folder, name)
	}
	return all
}

// TestReport compares two small releases, which differ in one item of each subject at least.
func TestReport(t *testing.T) {
	const golden = "testdata/report.md"
	r, err := compare(fixture(t, "before"), fixture(t, "after"), unpack(t, "ours"))
	if err != nil {
		t.Fatal(err)
	}
	got := r.markdown("1.36.3", "1.37.2", 100)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, one := range r {
		if len(one.changes) == 0 {
			t.Errorf("%s: no changes", one.title)
		}
	}
}

// TestSame checks that a release does not differ from itself.
func TestSame(t *testing.T) {
	r, err := compare(fixture(t, "after"), fixture(t, "after"), unpack(t, "ours"))
	if err != nil {
		t.Fatal(err)
	}
	if text := r.markdown("1.37.2", "1.37.2", 100); strings.Contains(text, "##") {
		t.Errorf("changes:\n%s", text)
	}
}

// TestBounds checks that the report is short for releases of any size.
func TestBounds(t *testing.T) {
	now := items{}
	for i := range 20 {
		now[fmt.Sprintf("core/v1 Type%02d", i)] = strings.Repeat("a|\n", 100)
	}
	text := report{{subject: subject{title: "Types"}, changes: difference(items{}, now)}}.markdown("1", "2", 5)
	if strings.Count(text, "| new | core/v1") != 5 || !strings.Contains(text, "\n15 more: use -rows.\n") {
		t.Error(text)
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "core/v1") && len(line) > 3*maxValue {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	o := &ours{files: map[string]map[string]int{}}
	for i := range maxFiles + 1 {
		o.add(fmt.Sprintf("file%02d", i), "Common")
		if i < maxOurs+2 {
			o.add(fmt.Sprintf("file%02d", i), "Rare")
		}
	}
	files, more := o.find([]string{"Absent", "Common", "Rare"}, "file")
	if other, _ := o.find([]string{"Rare"}, "internal/"); len(other) > 0 {
		t.Errorf("found %v elsewhere", other)
	}
	if strings.Join(files, " ") != "file00 file01 file02 file03" || more != 2 {
		t.Errorf("found %v and %d more", files, more)
	}
}

func TestVersion(t *testing.T) {
	folder := unpack(t, "ours")
	for _, version := range []string{"", "1.38", "v1.38.0", "2.0.0", "1.38.0; ls"} {
		if err := follow(folder, "", version, 1); err == nil || !strings.Contains(err.Error(), "VERSION=") {
			t.Errorf("%q: %v", version, err)
		}
	}
	if err := follow(unpack(t, "before"), "", "1.38.0", 1); err == nil {
		t.Error("a folder without our release is read")
	}
}
