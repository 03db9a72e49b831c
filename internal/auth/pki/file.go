package pki

import (
	"os"
	"path/filepath"
)

// writeFile replaces file with data, mode 0600, so that a reader or a crash finds the old content or the new one.
func writeFile(file string, data []byte) (err error) {
	dir := filepath.Dir(file)
	temp, err := os.CreateTemp(dir, "."+filepath.Base(file)+".*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Sync()
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err = os.Rename(temp.Name(), file); err != nil {
		return err
	}
	if d, openErr := os.Open(dir); openErr == nil {
		_ = d.Sync() // not every file system can; the rename is atomic without it
		_ = d.Close()
	}
	return nil
}
