package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/format"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file      string // "" for none
		want      string // the content afterwards
		newer     bool
		wantError string
	}{
		"of an earlier version": {want: `{"format":1,"version":"v2"}` + "\n"},
		"of this format":        {file: `{"format":1,"version":"v1"}`, want: `{"format":1,"version":"v1"}`},
		"of a later one": {
			file: `{"format":2,"version":"v9.8.7"}`, want: `{"format":2,"version":"v9.8.7"}`, newer: true,
			wantError: "was written by bowsprit v9.8.7 in format 2, and this version reads formats up to 1: " +
				"start that version or a later one, or restore",
		},
		"of one without a name": {
			file: `{"format":7}`, want: `{"format":7}`, newer: true, wantError: "was written by a later version in format 7",
		},
		"damaged": {file: "{", want: "{", wantError: "contains no format"},
		"empty":   {file: "{}", want: "{}", wantError: "contains no format"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, formatFile)
		if test.file != "" {
			if err := os.WriteFile(file, []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := MarkFormat(dir, "v2")
		if (err != nil) != (test.wantError != "") || err != nil && !strings.Contains(err.Error(), test.wantError) ||
			errors.Is(err, format.ErrNewer) != test.newer {
			t.Errorf("%s: %v", name, err)
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s %v", name, got, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v %v are left", name, entries, err)
		}
	}
}
