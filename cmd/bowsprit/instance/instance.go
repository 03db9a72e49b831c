// Package instance keeps the named servers of this user. Each has a directory with its settings, its log and a file
// that its process locks; the lock ends with the process, however it ends.
//
// The instance "default" has the data directory of "bowsprit serve". The functions read and write files only; the
// package lifecycle starts and stops the processes. Several processes may use an Instance at the same time: Reserve
// keeps them apart.
package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/internal/storage/durable"
)

// Default is the name of the instance with the data directory of "bowsprit serve".
const Default = "default"

// Instance is a named server of this user.
type Instance struct {
	Name     string
	Settings // the zero value if the instance was never started

	dir string
}

// Settings are stored with an instance, for its next start.
type Settings struct {
	// DataDir is the server's data directory. For an ephemeral server it holds the kubeconfig alone.
	DataDir string `json:"dataDir"`
	// Ephemeral is true if the server keeps its data in memory.
	Ephemeral bool `json:"ephemeral,omitempty"`
	// Port is the port of the API.
	Port int `json:"port"`
	// Flags are further flags of "bowsprit serve".
	Flags []string `json:"flags,omitempty"`
	// Kubeconfig is the file of kubectl that has the instance's context, or "".
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Unit is the name of the instance's systemd unit, or "".
	Unit string `json:"unit,omitempty"`
	// Created is the time of the first start.
	Created time.Time `json:"created"`
}

// Context returns the name of the instance's context, cluster and user in kubectl's file.
func (i *Instance) Context() string { return "bowsprit-" + i.Name }

// Log returns the file with the output of the instance's process.
func (i *Instance) Log() string { return filepath.Join(i.dir, "log") }

// maxLog is the size of a log, in bytes, from which the next start begins a new one.
const maxLog = 16 << 20

// TurnLog moves a large log aside, to log.old. The process of the instance must not run.
func (i *Instance) TurnLog() error {
	info, err := os.Stat(i.Log())
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() < maxLog {
		return nil
	}
	if err == nil {
		err = durable.Rename(i.Log(), i.Log()+".old")
	}
	if err != nil {
		return fmt.Errorf("instance %s: %w", i.Name, err)
	}
	return nil
}

// Exists reports whether the instance was started and not removed since.
func (i *Instance) Exists() bool { return i.DataDir != "" }

// OwnData reports whether the instance's data directory is below its own directory, so that removing the instance
// removes the data.
func (i *Instance) OwnData() bool { return i.DataDir == filepath.Join(i.dir, "data") }

// names are the valid names: they are parts of file names, of contexts and of systemd units.
var names = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// CheckName returns an error if a name cannot be an instance's.
func CheckName(name string) error {
	if !names.MatchString(name) {
		return exit.Usage(fmt.Errorf("%q cannot be the name of an instance: use up to 40 of a-z, 0-9 and -, "+
			"with a letter or digit at both ends", name))
	}
	return nil
}

// root returns the directory of all instances.
func root() (string, error) {
	base := dataHome()
	if base == "" {
		return "", errors.New("neither XDG_DATA_HOME nor HOME is set: set one of them, because instances are stored there")
	}
	return filepath.Join(base, "bowsprit-instances"), nil
}

// Open returns the instance with a name, which need not exist.
func Open(name string) (*Instance, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	dir, err := root()
	if err != nil {
		return nil, err
	}
	i := &Instance{Name: name, dir: filepath.Join(dir, name)}
	text, err := os.ReadFile(i.file())
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &i.Settings)
	}
	if err != nil {
		return nil, fmt.Errorf("the settings of instance %s cannot be read: %w: repair %s, or delete it and start again",
			name, err, i.file())
	}
	return i, nil
}

// file is the file with the settings.
func (i *Instance) file() string { return filepath.Join(i.dir, "instance.json") }

// NewDataDir returns the data directory for the instance's first start.
func (i *Instance) NewDataDir(ephemeral bool) string {
	if dir := DefaultDataDir(); i.Name == Default && !ephemeral && dir != "" {
		return dir
	}
	return filepath.Join(i.dir, "data")
}

// Store stores the settings.
func (i *Instance) Store() error {
	text, err := json.MarshalIndent(&i.Settings, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return fmt.Errorf("instance %s: %w", i.Name, err)
	}
	if err := durable.WriteFile(i.file(), append(text, '\n')); err != nil {
		return fmt.Errorf("instance %s: %w", i.Name, err)
	}
	return nil
}

// Remove deletes the instance's directory: settings, log and, with OwnData, all data.
func (i *Instance) Remove() error {
	if err := os.RemoveAll(i.dir); err != nil {
		return fmt.Errorf("instance %s: %w", i.Name, err)
	}
	i.Settings = Settings{}
	return nil
}

// PID returns the process of a running instance, or 0.
func (i *Instance) PID() int {
	text, err := os.ReadFile(filepath.Join(i.dir, "pid"))
	if err != nil || !i.Locked() {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}

// Running returns the running instances.
func Running(all []*Instance) (running []*Instance) {
	for _, i := range all {
		if i.Locked() {
			running = append(running, i)
		}
	}
	return running
}

// List returns the instances that exist, by name, and an error about the ones with unreadable settings.
func List() ([]*Instance, error) {
	dir, err := root()
	if err != nil {
		return nil, nil // without a place for instances there are none
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*Instance
	var failures []error
	for _, e := range entries {
		if CheckName(e.Name()) != nil {
			continue
		}
		i, err := Open(e.Name())
		switch {
		case err != nil:
			failures = append(failures, err)
		case i.Exists():
			all = append(all, i)
		}
	}
	return all, errors.Join(failures...)
}
