package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"strings"
	"time"
)

const (
	homepage   = "https://github.com/bowsprit/bowsprit"
	maintainer = "Bowsprit maintainers <maintainers@bowsprit.invalid>"
	summary    = "Kubernetes API server for custom resources, in one process"
	about      = "Serves CustomResourceDefinitions and their objects to unmodified Kubernetes clients. etcd is inside."
)

// deb makes a package of Debian: an ar archive of its control files and its files.
func (r *release) deb(t target, files []entry) error {
	size := 0
	var sums, kept strings.Builder
	for _, f := range files {
		size += len(f.data)
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), f.name)
		if f.config {
			fmt.Fprintf(&kept, "/%s\n", f.name)
		}
	}
	control := fmt.Sprintf("Package: bowsprit\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\n"+
		"Section: net\nPriority: optional\nHomepage: %s\nDescription: %s\n %s\n",
		r.number(), t.arch, maintainer, (size+1023)/1024, homepage, summary, about)
	members := []entry{
		{name: "control", data: []byte(control), mode: 0o644},
		{name: "md5sums", data: []byte(sums.String()), mode: 0o644},
		{name: "conffiles", data: []byte(kept.String()), mode: 0o644},
		{name: "postinst", data: []byte("#!/bin/sh\nset -e\n" + debInstalled), mode: 0o755},
		{name: "prerm", data: []byte("#!/bin/sh\nset -e\n" + debRemoves), mode: 0o755},
		{name: "postrm", data: []byte("#!/bin/sh\nset -e\n" + debRemoved), mode: 0o755},
	}
	controlTar, err := packed(sorted(members), r.time)
	if err != nil {
		return err
	}
	dataTar, err := packed(files, r.time)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, m := range []entry{
		{name: "debian-binary", data: []byte("2.0\n")},
		{name: "control.tar.gz", data: controlTar},
		{name: "data.tar.gz", data: dataTar},
	} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", m.name, r.time.Unix(), 0, 0, 0o100644, len(m.data))
		b.Write(m.data)
		if len(m.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return r.write(fmt.Sprintf("bowsprit_%s_%s.deb", r.number(), t.arch), b.Bytes())
}

func packed(files []entry, at time.Time) ([]byte, error) {
	data, err := tarred(files, at)
	if err != nil {
		return nil, err
	}
	return compress(data)
}

// What the packages do about the service. Without systemd, as in a container, nothing is started. As Debian has it, a
// first installation starts the service; an upgrade starts it anew if it runs. Data stays when the package goes.
const (
	debInstalled = `if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ -z "$2" ]; then
		systemctl enable --now bowsprit.service
	else
		systemctl try-restart bowsprit.service
	fi
fi
`
	debRemoves = `if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now bowsprit.service
fi
`
	debRemoved = `if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ] && [ -e /var/lib/bowsprit ]; then
	echo "bowsprit: the data stays in /var/lib/bowsprit (with DynamicUser in /var/lib/private/bowsprit)"
fi
`
	rpmInstalled = `if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ "$1" = 1 ]; then systemctl preset bowsprit.service; else systemctl try-restart bowsprit.service; fi
fi
`
	rpmRemoves = `if [ "$1" = 0 ] && [ -d /run/systemd/system ]; then
	systemctl disable --now bowsprit.service
fi
`
)
