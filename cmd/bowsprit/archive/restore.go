package archive

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/storage/backup"
	"github.com/bowsprit/bowsprit/internal/storage/durable"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
)

// restoreFlags are the flags of "bowsprit restore".
type restoreFlags struct {
	dataDir      string
	bump         uint64
	check, quiet bool
	form         output.Form
}

// RestoreCommand returns "bowsprit restore".
func RestoreCommand() *cobra.Command {
	var flags restoreFlags
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a server's data directory out of a backup, or check the backup",
		Long: `Create a server's data directory from a file of "bowsprit backup": data, keys and certificates. The command checks the
whole file first, refuses a directory that already holds a server's data or keys, and leaves nothing behind on failure.

Resource versions continue from a higher number (--bump-revision), so that clients with resource versions from after the
backup list again.`,
		Example: `  bowsprit restore monday.tar --check
  bowsprit restore monday.tar --data-dir /srv/restored
  bowsprit serve --data-dir /srv/restored`,
		Args: arguments.One("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := newProgress(cmd.ErrOrStderr(), flags.quiet)
			if flags.check {
				p.begin("checking the file")
				m, err := check(args[0], p)
				if err != nil {
					return advise(args[0], err)
				}
				return showChecked(cmd.OutOrStdout(), args[0], m, flags.form)
			}
			m, err := restore(args[0], flags, p)
			if err != nil {
				return fmt.Errorf("nothing was restored: %w", advise(args[0], err))
			}
			return showRestored(cmd.OutOrStdout(), args[0], flags, m)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.dataDir, "data-dir", connect.DefaultDataDir(),
		"data directory of the server; it must hold no data yet")
	f.Uint64Var(&flags.bump, "bump-revision", 1_000_000_000,
		"add this to resourceVersions, so that clients with newer ones list again; 0 keeps them")
	f.BoolVar(&flags.check, "check", false, "only check the file, and restore nothing")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "do not show progress")
	flags.form.Bind(f)
	return cmd
}

// advise adds a remedy for a file that is only a snapshot.
func advise(file string, err error) error {
	if !errors.Is(err, errNotArchive) {
		return err
	}
	if _, bad := embedded.CheckSnapshot(file); bad == nil {
		return fmt.Errorf("%w, but a snapshot: use \"bowsprit snapshot restore\"", err)
	}
	return err
}

func showChecked(out io.Writer, file string, m *Manifest, form output.Form) error {
	return form.Print(out, m.result(file), func(out io.Writer) error {
		_, err := fmt.Fprintf(out, "%s is good: %d keys at revision %d, %d files of keys and certificates, made at %s by "+
			"bowsprit %s.\n", file, m.Keys, m.Revision, m.certificates(), m.Created.Format("2006-01-02 15:04:05 MST"),
			m.Version)
		return err
	})
}

func showRestored(out io.Writer, file string, flags restoreFlags, m *Manifest) error {
	r := m.result(file)
	r.DataDir = flags.dataDir
	return flags.form.Print(out, r, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, "Restored %d keys, now at revision %d, and %d files of keys and certificates. Start the "+
			"server with\n\n  bowsprit serve --data-dir=%s\n\n", m.Keys, m.Revision, m.certificates(), flags.dataDir)
		if err == nil && m.certificates() == 0 {
			_, err = fmt.Fprintln(out, "It will create its own certificates, because the backup contains none.")
		}
		return err
	})
}

// restore fills the data directory. The manifest that it returns has the revision after it.
func restore(file string, flags restoreFlags, p *progress) (m *Manifest, err error) {
	if flags.dataDir == "" {
		return nil, errors.New("neither XDG_DATA_HOME nor HOME is set: name a directory with --data-dir")
	}
	keys := filepath.Join(flags.dataDir, pkiFolder)
	for _, held := range []string{keys, backup.EtcdDir(flags.dataDir)} {
		if connect.Exists(held) {
			return nil, fmt.Errorf("%s exists: name a directory without a server's data with --data-dir", held)
		}
	}
	made, err := makeDir(flags.dataDir)
	if err != nil {
		return nil, err
	}
	part, err := os.MkdirTemp(flags.dataDir, ".restore-")
	defer func() { // removes the rest, and everything after a failure
		left := []string{part}
		if err != nil {
			left = append(left, keys, backup.EtcdDir(flags.dataDir))
			if made != "" {
				left = append(left, made)
			}
		}
		for _, dir := range left {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err != nil {
		return nil, err
	}
	if m, err = unpack(file, part, p); err != nil {
		return nil, err
	}
	p.begin("restoring the data")
	info, err := backup.Restore(filepath.Join(part, databaseName), flags.dataDir, flags.bump)
	if err != nil {
		return nil, err
	}
	m.Revision, m.Keys = info.Revision, info.Keys
	if m.certificates() > 0 {
		err = durable.Rename(filepath.Join(part, pkiFolder), keys)
	}
	return m, err
}

// makeDir makes a directory and its parents. made is the topmost new one.
func makeDir(dir string) (made string, err error) {
	for above := filepath.Clean(dir); !connect.Exists(above); above = filepath.Dir(above) {
		made = above
	}
	return made, os.MkdirAll(dir, 0o700)
}

// unpack writes the files of an archive below dir, and checks them.
func unpack(file, dir string, p *progress) (*Manifest, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if err := os.Mkdir(filepath.Join(dir, pkiFolder), 0o700); err != nil {
		return nil, err
	}
	p.begin("reading the file")
	m, err := read(in, p, func(f File, from io.Reader) error {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, from)
		if err == nil {
			err = out.Sync()
		}
		return errors.Join(err, out.Close())
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}
