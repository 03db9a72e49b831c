package lint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRoomForCI runs .ci/run with a disk of 30 GB: each entry of Go's build cache takes one GB, and 20 GB must be free.
// The test is in this package because its tests always run: go test does not notice changed scripts.
func TestRoomForCI(t *testing.T) {
	const test = "make test\n"
	for _, c := range []struct {
		name    string
		entries map[int]int // how many by their age in minutes
		left    int         // after it
		want    string      // at the end
	}{
		{"enough", map[int]int{5: 2, 2000: 8}, 10, test},
		{"the oldest go", map[int]int{5: 2, 130: 3, 500: 4, 2000: 5}, 9, "cache unused for 1440 minutes\n" + test},
		{"more go", map[int]int{5: 8, 90: 3, 500: 4}, 8, "unused for 60 minutes\n" + test},
		{"all go", map[int]int{5: 12, 2000: 1}, 0, "unused for 60 minutes, the rest of the cache\n" + test},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := func(name, content string, age int) string {
				name = filepath.Join(dir, name)
				at := time.Now().Add(-time.Duration(age) * time.Minute)
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(content), 0o700); err != nil {
					t.Fatal(err)
				}
				for _, f := range []string{name, filepath.Dir(name)} {
					if err := os.Chtimes(f, at, at); err != nil {
						t.Fatal(err)
					}
				}
				return name
			}
			for age, n := range c.entries {
				for i := range n {
					file(fmt.Sprintf("cache/a0/%d-%d-d", age, i), "", age)
				}
			}
			file("tmp/go-build1/old", "", 300)
			file("tmp/TestLong1/data", "", 5) // of a test that still runs
			file("tmp/TestLong1/old", "", 300)
			file("tmp/other/old", "", 300)
			file("bin/make", "#!/bin/sh\necho make $*\n", 0)
			file("bin/df", "#!/bin/sh\nn=$(find "+dir+"/cache -name '*-d' | wc -l)\n"+
				"echo Filesystem 1024-blocks Used Available Capacity Mounted on\n"+
				"echo /dev/x 1 1 $(( (30 - n) * 1048576 )) 1% /\n", 0)

			cmd := exec.Command("../../.ci/run")
			cmd.Env = append(os.Environ(), "PATH="+dir+"/bin:"+os.Getenv("PATH"), "GOCACHE="+dir+"/cache", "GOTMPDIR=",
				"TMPDIR="+dir+"/tmp")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), c.want) {
				t.Errorf("%v, says:\n%s\nwant at the end:\n%s", err, out, c.want)
			}
			if left, _ := filepath.Glob(dir + "/cache/a0/*-d"); len(left) != c.left {
				t.Errorf("%d entries are left, want %d: %s", len(left), c.left, left)
			}
			want := "TestLong1 other"
			if c.want == test {
				want = "TestLong1 go-build1 other"
			}
			there, _ := filepath.Glob(dir + "/tmp/*")
			if got := strings.ReplaceAll(strings.Join(there, " "), dir+"/tmp/", ""); got != want {
				t.Errorf("in the temporary directory are %s, want %s", got, want)
			}
		})
	}
}
