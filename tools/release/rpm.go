package main

import (
	"bytes"
	"fmt"

	"github.com/google/rpmpack"
)

// rpm makes a package of Fedora, RHEL and SUSE.
func (r *release) rpm(t target, files []entry) error {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[t.arch]
	p, err := rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: "bowsprit", Version: r.number(), Release: "1", Arch: arch, OS: "linux", BuildHost: "localhost",
		Summary: summary, Description: about, Licence: "Apache-2.0", URL: homepage, Packager: maintainer,
		Vendor: "Bowsprit", Group: "System Environment/Daemons", Compressor: "gzip:9", BuildTime: r.time,
	})
	if err != nil {
		return err
	}
	for _, f := range files {
		kind := rpmpack.GenericFile
		if f.config {
			kind = rpmpack.ConfigFile | rpmpack.NoReplaceFile
		}
		p.AddFile(rpmpack.RPMFile{Name: "/" + f.name, Body: f.data, Mode: uint(0o100000 | f.mode), Owner: "root",
			Group: "root", MTime: uint32(r.time.Unix()), Type: kind})
	}
	p.AddPostin(rpmInstalled)
	p.AddPreun(rpmRemoves)
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return err
	}
	return r.write(fmt.Sprintf("bowsprit-%s-1.%s.rpm", r.number(), arch), b.Bytes())
}
