package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bowsprit/bowsprit/internal/storage/durable"
	"github.com/bowsprit/bowsprit/internal/storage/format"
)

// formatFile is beside etcd and pki. It is written before any data of a newer format.
const formatFile = "format.json"

// ReadFormat returns the format of a directory; the first one if the directory has no mark.
func ReadFormat(dir string) (format.Mark, error) {
	data, err := os.ReadFile(filepath.Join(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		return format.Mark{Format: 1}, nil
	}
	if err != nil {
		return format.Mark{}, fmt.Errorf("the format of the data: %w", err)
	}
	m, err := format.Parse(data)
	if err != nil {
		return m, fmt.Errorf("%s contains no format: restore it, or write {\"format\":%d} into it if no "+
			"later version of bowsprit was started here", filepath.Join(dir, formatFile), format.Current)
	}
	if err := m.Check(dir); err != nil {
		return m, fmt.Errorf("%w, or restore a backup from before the upgrade into another directory", err)
	}
	return m, nil
}

// MarkFormat marks a directory with this program's format. It changes nothing, and returns format.ErrNewer, if the
// directory has a newer one. version is the version of this program.
func MarkFormat(dir, version string) error {
	m, err := ReadFormat(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, formatFile)); err == nil && m.Format == format.Current {
		return nil
	}
	text := append(format.Of(version).Text(), '\n')
	if err := durable.WriteFile(filepath.Join(dir, formatFile), text); err != nil {
		return fmt.Errorf("record the format of the data: %w", err)
	}
	return nil
}
