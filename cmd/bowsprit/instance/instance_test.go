package instance

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNames has names refused that cannot be parts of file names, contexts and units.
func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "default": true, "dev-2": true, "0": true,
		"": false, "A": false, "-a": false, "a-": false, "a/b": false, "..": false,
		"a b": false, "a.b": false, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": false,
	} {
		if err := CheckName(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestStored stores, lists, locks and removes instances.
func TestStored(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_DATA_HOME", home)
	t.Setenv("BOWSPRIT_DATA_DIR", "")
	if all, err := List(); err != nil || len(all) > 0 {
		t.Fatal(all, err)
	}
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("HOME", "")
	if all, err := List(); err != nil || len(all) > 0 {
		t.Error("without a home there are no instances", all, err)
	}
	if _, err := Open("a"); err == nil {
		t.Error("an instance without a home is no error")
	}
	t.Setenv("XDG_DATA_HOME", home)
	for _, name := range []string{"b", Default} {
		i, err := Open(name)
		if err != nil || i.Exists() || i.Locked() {
			t.Fatal(i, err)
		}
		i.DataDir = i.NewDataDir(false)
		if i.OwnData() != (name == "b") {
			t.Errorf("%s has its data in %s", name, i.DataDir)
		}
		if err := i.Store(); err != nil {
			t.Fatal(err)
		}
	}
	all, err := List()
	if err != nil || len(all) != 2 || all[0].Name != "b" || all[1].DataDir != filepath.Join(home, "bowsprit") {
		t.Fatal(all, err)
	}
	b := all[0]
	if err := b.Become(); err != nil || b.PID() != os.Getpid() {
		t.Fatal(b.PID(), err)
	}
	if err := os.WriteFile(b.Log(), make([]byte, maxLog), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.TurnLog(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(b.Log() + ".old"); err != nil {
		t.Error(err)
	}
	if err := b.Remove(); err != nil || b.Exists() {
		t.Fatal(err)
	}
	file := filepath.Join(home, "bowsprit-instances", Default, "instance.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := List(); err == nil || len(all) > 0 {
		t.Error("settings that cannot be read are no error", all)
	}
}
