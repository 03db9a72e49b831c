package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/storage/datadir"
	"github.com/bowsprit/bowsprit/internal/storage/format"
)

const (
	// fewBytes is too little disk space for logs and a rewritten database.
	fewBytes = 1 << 30
	// defaultQuota is the quota of the embedded etcd.
	defaultQuota = 8 << 30
	// soon is the time before the end of a certificate in which doctor warns, if the server does not renew it.
	soon = 14 * 24 * time.Hour
)

// dataDir checks the directory, the free space on its disk and the size of the database.
func (e *examination) dataDir() {
	const check = "data directory"
	if e.dir == "" {
		e.add(check, OK, "", "none: the server is ephemeral")
		return
	}
	info, err := os.Stat(e.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.newDir(check)
		return
	case err != nil:
		e.add(check, Problem, "make it readable for the server's user, or name another with --data-dir", "%v", err)
		return
	case !info.IsDir():
		e.add(check, Problem, "name a directory with --data-dir", "%s is not a directory", e.dir)
		return
	case info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/':
		e.add(check, Warning, "chmod 700 "+e.dir, "%s holds keys, and other users can read it: mode %o", e.dir,
			info.Mode().Perm())
	}
	trial, err := os.CreateTemp(e.dir, ".doctor-")
	if err != nil {
		e.add(check, Problem, "run the server, and this command, as the owner of the directory",
			"it is not writable: %v", err)
		return
	}
	trial.Close()
	os.Remove(trial.Name())
	free, known := diskFree(e.dir)
	switch {
	case !known:
		e.add(check, OK, "", "%s is writable", e.dir)
	case free < fewBytes:
		e.add(check, Warning, "free disk space: the server stops when the disk is full", "%s has %s left", e.dir, output.Size(free))
	default:
		e.add(check, OK, "", "%s is writable, %s free", e.dir, output.Size(free))
	}
	e.format(datadir.ReadFormat(e.dir))
	e.database()
}

// newDir checks that the first start can create the data directory.
func (e *examination) newDir(check string) {
	above := filepath.Dir(filepath.Clean(e.dir))
	for !exists(above) && above != filepath.Dir(above) {
		above = filepath.Dir(above)
	}
	trial, err := os.MkdirTemp(above, ".doctor-")
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		e.add(check, Problem, "name a directory with --data-dir, or make "+above+" writable for the server's user",
			"%s does not exist, and cannot be created in %s: %v", e.dir, above, err)
		return
	}
	os.Remove(trial)
	e.add(check, OK, "", "%s does not exist yet: the first start creates it", e.dir)
}

// format reports the format of the data as recorded in the data directory or etcd.
func (e *examination) format(written format.Mark, err error) {
	switch {
	case errors.Is(err, format.ErrNewer):
		e.add("format", Problem, "start the version that wrote it, or a later one", "%v", err)
	case err != nil:
		e.add("format", Problem, "check which version ran here last", "%v", err)
	default:
		e.add("format", OK, "", "%d; this version reads formats up to %d", written.Format, format.Current)
	}
}

// database compares the embedded etcd's with its quota.
func (e *examination) database() {
	if len(e.Settings.EtcdServers) > 0 {
		return
	}
	info, err := os.Stat(filepath.Join(e.dir, "etcd", "member", "snap", "db"))
	if err != nil {
		return // the database does not exist yet
	}
	quota := e.Settings.QuotaBackendBytes
	if quota == 0 {
		quota = defaultQuota
	}
	if info.Size() > quota/10*9 {
		e.add("database", Warning, "delete objects, or raise --quota-backend-bytes: writes fail at the quota",
			"%s of %s", output.Size(info.Size()), output.Size(quota))
		return
	}
	e.add("database", OK, "", "%s of %s", output.Size(info.Size()), output.Size(quota))
}

// certificates checks the certificates in files. The server renews its own certificates; the administrator must renew
// the others.
func (e *examination) certificates() {
	given := map[string]string{
		"--tls-cert-file": e.Settings.TLSCert, "--etcd-certfile": e.Settings.EtcdCert,
		"--etcd-cafile": e.Settings.EtcdCA,
	}
	for _, flag := range []string{"--tls-cert-file", "--etcd-cafile", "--etcd-certfile"} {
		if file := given[flag]; file != "" {
			e.certificate(flag, file, "replace it; the server reloads the file by itself")
		}
	}
	if e.dir == "" {
		return
	}
	if file := filepath.Join(e.dir, "pki", "ca.crt"); exists(file) {
		e.certificate("authority", file, "start the server, which renews an expiring authority; if the file is damaged, "+
			"restore it and its key from a backup")
	}
}

func (e *examination) certificate(check, file, do string) {
	data, err := os.ReadFile(file)
	if err != nil {
		e.add(check, Problem, "name a file that the server can read", "%v", err)
		return
	}
	block, _ := pem.Decode(data)
	if block == nil {
		e.add(check, Problem, do, "%s contains no PEM certificate", file)
		return
	}
	c, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		e.add(check, Problem, do, "%s: %v", file, err)
	case e.Now.After(c.NotAfter):
		e.add(check, Problem, do, "%s expired on %s", file, day(c.NotAfter))
	case e.Now.Before(c.NotBefore):
		e.add("clock", Problem, "set the clock", "the clock shows %s, and %s is valid from %s", day(e.Now), file,
			day(c.NotBefore))
	case e.Now.Add(soon).After(c.NotAfter):
		e.add(check, Warning, do, "%s expires on %s", file, day(c.NotAfter))
	default:
		e.add(check, OK, "", "%s is valid until %s", file, day(c.NotAfter))
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func day(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }
