package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/storage/backup"
	"github.com/bowsprit/bowsprit/internal/storage/datadir"
	"github.com/bowsprit/bowsprit/internal/storage/durable"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
)

// Result is the output of both commands for programs.
type Result struct {
	File         string `json:"file"`
	DataDir      string `json:"dataDir,omitempty"` // of a restore
	Revision     int64  `json:"revision"`
	Keys         int    `json:"keys"`
	Bytes        int64  `json:"bytes"`
	Certificates int    `json:"certificates"` // files of keys and certificates
	Version      string `json:"version"`      // of the program that made the backup
}

// backupFlags are the flags of "bowsprit backup".
type backupFlags struct {
	dataDir, kubeconfig string
	force, quiet        bool
	form                output.Form
	schedule            schedule
}

// BackupCommand returns "bowsprit backup". version is the version of this program.
func BackupCommand(version string) *cobra.Command {
	var flags backupFlags
	cmd := &cobra.Command{
		Use:   "backup (FILE | --schedule DURATION DIRECTORY)",
		Short: "Save a whole server, data and certificates, to a file; the server may run",
		Long: `Save a whole server to one file: a consistent copy of its data, and the keys and certificates below <data-dir>/pki.
Existing kubeconfigs and tokens stay valid for a server that "bowsprit restore" restores from the file. The server keeps
serving requests. The command reads the file back and checks it before renaming it to FILE.

With --schedule the command saves a new file, bowsprit-TIME.tar, into a directory now and after each period, until a signal.
A failure of a later backup removes no file; the next attempt follows after the period. --keep bounds the number of these
files; the command never removes other files.

The file grants full control of the server: protect it like the data directory. It does not contain files that flags
name, such as an encryption configuration. With --kubeconfig it contains no certificates either: they never leave the
server's machine.`,
		Example: `  bowsprit backup monday.tar                            # the server with the default data directory, running or not
  bowsprit backup monday.tar --data-dir /srv/bowsprit -o json
  bowsprit restore monday.tar --check                   # is the file good?
  bowsprit backup --schedule 24h --keep 7 ./backups     # every day, until a signal; keeps a week`,
		Args: arguments.One("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return exit.Usage(err)
			}
			if err := connect.Dir(cmd.Flags(), &flags.dataDir); err != nil {
				return err
			}
			p := newProgress(cmd.ErrOrStderr(), flags.quiet)
			one := func(ctx context.Context, file string) error {
				m, err := save(ctx, file, version, flags, p)
				if err != nil {
					return err
				}
				return showSaved(cmd.OutOrStdout(), file, m, flags.form)
			}
			if err := flags.run(cmd, args[0], one); err != nil {
				return fmt.Errorf("nothing was saved: %w", err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	connect.BindDir(f, &flags.dataDir)
	f.StringVar(&flags.kubeconfig, "kubeconfig", "",
		"read from the server of this kubeconfig, as an administrator, instead of a data directory")
	f.BoolVar(&flags.force, "force", false, "replace FILE if it exists")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "do not show progress")
	f.DurationVar(&flags.schedule.period, "schedule", 0,
		"save into DIRECTORY now and after each such time, until a signal (default: once)")
	f.IntVar(&flags.schedule.keep, "keep", 0,
		"with --schedule: remove the oldest scheduled files beyond this number; 0 keeps all")
	flags.form.Bind(f)
	return cmd
}

// check refuses flags that contradict each other.
func (f *backupFlags) check() error {
	switch {
	case f.schedule.period != 0 && f.form.ForPrograms():
		return errors.New("--output and --schedule are mutually exclusive: a series has no single result")
	case f.schedule.period != 0 && f.force:
		return errors.New("--force and --schedule are mutually exclusive: each file of a series is new")
	}
	return f.schedule.check()
}

// run makes one backup in a file, or a series in a directory until a signal.
func (f *backupFlags) run(cmd *cobra.Command, to string, one func(context.Context, string) error) error {
	if f.schedule.period == 0 {
		return one(cmd.Context(), to)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f.schedule.dir, f.schedule.save, f.schedule.notes = to, one, cmd.ErrOrStderr()
	return f.schedule.run(ctx)
}

func showSaved(out io.Writer, file string, m *Manifest, form output.Form) error {
	certificates := fmt.Sprintf("%d files of keys and certificates", m.certificates())
	if m.certificates() == 0 {
		certificates = "no certificates"
	}
	return form.Print(out, m.result(file), func(out io.Writer) error {
		_, err := fmt.Fprintf(out, "Saved %s: %d keys at revision %d, %s, %s, checked.\n", file, m.Keys, m.Revision,
			certificates, output.Size(m.bytes()))
		return err
	})
}

func (m *Manifest) result(file string) Result {
	return Result{File: file, Revision: m.Revision, Keys: m.Keys, Bytes: m.bytes(), Certificates: m.certificates(),
		Version: m.Version}
}

// CheckTarget returns an error unless a command can write a file. replace permits an existing file.
func CheckTarget(file string, replace bool) error {
	if _, err := os.Lstat(file); err == nil && !replace {
		return fmt.Errorf("%s exists: choose another name, or replace it with --force", file)
	}
	if dir := filepath.Dir(file); !connect.Exists(dir) {
		return fmt.Errorf("the directory %s does not exist: create it, or choose another name", dir)
	}
	return nil
}

// save writes the archive next to its final place, checks it, and renames it.
func save(ctx context.Context, file, version string, flags backupFlags, p *progress) (m *Manifest, err error) {
	if err := CheckTarget(file, flags.force); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), "."+filepath.Base(file)+".part-") // mode 0700: it holds keys
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m = &Manifest{Format: layout, Version: version, Created: time.Now().UTC().Truncate(time.Second)}
	info, err := Snapshot(ctx, filepath.Join(dir, databaseName), flags.dataDir, flags.kubeconfig, p)
	if err != nil {
		return nil, err
	}
	m.Revision, m.Keys, m.DataFormat = info.Revision, info.Keys, info.Format.Format
	if err := info.Format.Check("the data of the server"); err != nil {
		return nil, err
	}
	if flags.kubeconfig == "" {
		if err := copyKeys(filepath.Join(flags.dataDir, pkiFolder), filepath.Join(dir, pkiFolder)); err != nil {
			return nil, err
		}
		written, err := datadir.ReadFormat(flags.dataDir)
		if err != nil {
			return nil, err
		}
		m.DataFormat = max(m.DataFormat, written.Format)
	}
	if m.Files, err = describe(dir); err != nil {
		return nil, err
	}
	part := filepath.Join(dir, "archive")
	if err := pack(part, m, dir, p); err != nil {
		return nil, err
	}
	p.begin("checking the file")
	if _, err := check(part, p); err != nil {
		return nil, err
	}
	return m, durable.Rename(part, file)
}

func pack(part string, m *Manifest, dir string, p *progress) error {
	p.begin("writing the file")
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = write(f, m, dir, p)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// copyKeys copies the files of a folder. The folder is missing if the server uses certificates from elsewhere.
func copyKeys(from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !slices.Contains(keyFiles, e.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Snapshot writes a checked snapshot of the data to file. The source is the server that kubeconfig names, else the data
// directory, or the server that uses that directory. p may be nil.
func Snapshot(ctx context.Context, file, dataDir, kubeconfig string, p *progress) (embedded.SnapshotInfo, error) {
	counted := func(from backup.Source) backup.Source {
		return func(ctx context.Context, w io.Writer) error { return from(ctx, io.MultiWriter(w, p)) }
	}
	ask := func(kubeconfig string) (embedded.SnapshotInfo, error) {
		config, err := connect.FromFile(kubeconfig)
		if err != nil {
			return embedded.SnapshotInfo{},
				fmt.Errorf("kubeconfig of the server: %w: name another one with --kubeconfig", err)
		}
		config.Timeout = 0 // a snapshot may be large
		return backup.Save(ctx, counted(backup.FromServer(config)), file)
	}
	if kubeconfig != "" {
		p.begin("reading the data of the server in " + kubeconfig)
		return ask(kubeconfig)
	}
	own, err := connect.KubeconfigOf(dataDir)
	if err != nil {
		return embedded.SnapshotInfo{}, err
	}
	p.begin("reading the data in " + dataDir)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	info, err := backup.Save(ctx, counted(backup.FromDir(dataDir, log)), file)
	switch {
	case errors.Is(err, store.ErrInUse):
		return ask(own)
	case errors.Is(err, os.ErrNotExist):
		err = fmt.Errorf("%w: name the server's directory with --data-dir, or the server with --kubeconfig", err)
	}
	return info, err
}
