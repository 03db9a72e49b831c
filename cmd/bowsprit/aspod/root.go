package aspod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
)

// root is where the files of a pod are on this machine.
type root struct {
	// dir is prepended to the paths, or "" in a mount namespace, where the paths are a pod's own.
	dir string
	// prepare makes the directory at a path that is about to be written.
	prepare func(path string, file bool) error
}

// at returns where a path of the pod is. The result is below dir for every path.
func (r root) at(name string) string {
	return filepath.Join(r.dir, filepath.FromSlash(path.Clean("/"+name)))
}

// write writes the current files of a location.
func (r root) write(p location, files content) error {
	if !p.file {
		return writeDirectory(r.at(p.path), files)
	}
	return os.WriteFile(r.at(p.path), []byte(files[""]), 0o600)
}

// files keeps the files of a pod.
type files struct {
	client    kubernetes.Interface
	root      root
	notes     io.Writer
	locations []location
	last      []content // what each location has
}

// fillEvery is the interval at which objects are read again. A kubelet takes up to a minute.
const fillEvery = 2 * time.Second

// absent is the error for a key of an object that another program may still write.
type absent string

// Error implements error.
func (a absent) Error() string { return string(a) }

// isAbsent reports whether err is about an object or a key that may appear later.
func isAbsent(err error) bool {
	var a absent
	return errors.As(err, &a) || apierrors.IsNotFound(err)
}

// fill writes all locations. It waits for objects that do not exist yet, as a pod does, and prints the first such error
// of each location. Any other error ends it.
func (f *files) fill(ctx context.Context) error {
	f.last = make([]content, len(f.locations))
	for i, p := range f.locations {
		if err := f.root.prepare(p.path, p.file); err != nil {
			return fmt.Errorf("prepare %s: %w", p.path, err)
		}
		for printed := false; ; printed = true {
			files, err := p.read(ctx, f.client)
			if err == nil {
				if err := f.root.write(p, files); err != nil {
					return err
				}
				f.last[i] = files
				break
			}
			if !isAbsent(err) {
				return err
			}
			if !printed {
				fmt.Fprintf(f.notes, "bowsprit: waiting: %s: %v\n", p.path, err)
			}
			if !sleep(ctx, fillEvery) {
				return fmt.Errorf("%s: %w", p.path, err)
			}
		}
	}
	return nil
}

// follow writes changes of objects, and renewed tokens, until ctx ends. An unreadable object keeps its last files.
func (f *files) follow(ctx context.Context) {
	printed := map[string]string{}
	for sleep(ctx, fillEvery) {
		for i, p := range f.locations {
			if p.fixed || p.file {
				continue
			}
			files, err := p.read(ctx, f.client)
			if err == nil && !maps.Equal(files, f.last[i]) {
				if err = f.root.write(p, files); err == nil {
					f.last[i] = files
				}
			}
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != "" && text != printed[p.path] && ctx.Err() == nil {
				fmt.Fprintf(f.notes, "bowsprit: %s keeps its files: %s\n", p.path, text)
			}
			printed[p.path] = text
		}
	}
}

// sleep waits, and returns false if ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
