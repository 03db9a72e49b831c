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

// formatFile is beside etcd and pki. It is written before anything of a newer format.
const formatFile = "format.json"

// ReadFormat returns the format of a directory, one that is not known yet as the first.
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
		return m, fmt.Errorf("%s says nothing of a format: restore it, or write {\"format\":%d} into it if no "+
			"later version of bowsprit was started here", filepath.Join(dir, formatFile), format.Current)
	}
	if err := m.Known(dir); err != nil {
		return m, fmt.Errorf("%w, or restore a backup from before the upgrade into another directory", err)
	}
	return m, nil
}

// MarkFormat notes in a directory that it has this program's format. It changes nothing, and returns format.ErrNewer,
// if that is lower than the one it has. version names this program.
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
		return fmt.Errorf("note the format of the data: %w", err)
	}
	return nil
}
