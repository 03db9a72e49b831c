package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// Etcd selects the store of objects: an embedded etcd, or an external cluster.
type Etcd struct {
	// Servers are the URLs of an external etcd cluster to use instead of the embedded etcd. CAFile, CertFile and
	// KeyFile are the authority of its certificates and a client certificate with its key, PEM.
	Servers                   []string
	CAFile, CertFile, KeyFile string // see Servers
	// Prefix is the root of all keys, "/registry" if empty.
	Prefix string
	// QuotaBackendBytes is how large the embedded etcd's database may grow; 8 GiB if zero.
	QuotaBackendBytes int64
	// StorageMediaType is the format of stored built-in kinds: application/json, the default, application/yaml,
	// application/vnd.kubernetes.protobuf, the default of kube-apiserver and "bowsprit kube-apiserver", or
	// application/vnd.bowsprit.compressed+json, which only Bowsprit reads. The last one is the default with simulated
	// workloads in an embedded etcd without ListenClientURL; with other etcds that default is protobuf. The server
	// reads all of them. Definitions and APIServices are always JSON; API.CBOR selects the format of custom
	// objects.
	StorageMediaType string
	// ListenClientURL makes the embedded etcd reachable, for etcdctl; empty means no socket.
	ListenClientURL string
}

const defaultEtcdPrefix = "/registry"

// setDefaults fills in the defaults. simulated reports whether the server simulates workloads.
func (c *Etcd) setDefaults(simulated bool) {
	c.Prefix = cmp.Or(c.Prefix, defaultEtcdPrefix)
	if c.StorageMediaType == "" && simulated {
		c.StorageMediaType = simulatedMediaType(len(c.Servers) > 0 || c.ListenClientURL != "")
	}
}

// simulatedMediaType returns the default storage media type of a server that simulates workloads. The pages of etcd's
// database count as memory of the process, so it is small. others reports whether other programs may read the store;
// they can read protobuf.
func simulatedMediaType(others bool) string {
	if others {
		return codec.Protobuf
	}
	return convert.CompressedJSON
}

func (c *Etcd) settings(command Command) []Setting {
	servers, media := "URLs of an external etcd cluster, instead of the embedded etcd", ""
	stored := "; all of them are read (default application/json, compressed with --simulate)"
	if command == KubeAPIServer {
		servers, media, stored = "URLs of etcd's members", codec.Protobuf, "; all of them are read"
	}
	return []Setting{
		{Name: "etcd-servers", Help: servers, Value: &c.Servers},
		{Name: "etcd-cafile", Help: "authority of etcd's certificates, PEM", Value: &c.CAFile},
		{Name: "etcd-certfile", Help: "client certificate for etcd, PEM", Value: &c.CertFile},
		{Name: "etcd-keyfile", Help: "key of --etcd-certfile, PEM", Value: &c.KeyFile},
		{Name: "etcd-prefix", Help: "root of all keys in etcd", Value: &c.Prefix, Default: defaultEtcdPrefix},
		{
			Name:  "storage-media-type",
			Help:  "storage encoding of built-in kinds: " + strings.Join(convert.MediaTypes(), ", ") + stored,
			Value: &c.StorageMediaType, Default: media,
		},
		{
			Name: "quota-backend-bytes", Help: "maximum size of the embedded etcd's database (default 8 GiB)",
			Value: &c.QuotaBackendBytes, Only: Serve,
		},
		{
			Name:  "etcd-listen-client-url",
			Help:  "make the embedded etcd reachable at this URL, for etcdctl (default: no socket)",
			Value: &c.ListenClientURL, Only: Serve,
		},
	}
}

func (c *Etcd) validate(p *problems) {
	for _, server := range c.Servers {
		if u, err := url.Parse(server); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			p.add("--etcd-servers: %q is not a URL such as https://127.0.0.1:2379", server)
		}
	}
	external := len(c.Servers) > 0
	if external && c.ListenClientURL != "" {
		p.add("--etcd-listen-client-url exposes the embedded etcd, which --etcd-servers replaces: drop one of them")
	}
	if !external && (c.CAFile != "" || c.CertFile != "" || c.KeyFile != "") {
		p.add("--etcd-cafile, --etcd-certfile and --etcd-keyfile belong to an external cluster: add --etcd-servers")
	}
	if c.QuotaBackendBytes < 0 {
		p.add("--quota-backend-bytes %d is negative: use a number of bytes, or 0 for 8 GiB", c.QuotaBackendBytes)
	}
	if external && c.QuotaBackendBytes != 0 {
		p.add("--quota-backend-bytes is the embedded etcd's, which --etcd-servers replaces: drop one of them")
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		p.add("--etcd-certfile and --etcd-keyfile go together: give both or none")
	}
	if strings.Trim(c.Prefix, "/") == "" && c.Prefix != "" {
		p.add("--etcd-prefix %q leaves no name for the keys: use something like /registry", c.Prefix)
	}
	if types := convert.MediaTypes(); c.StorageMediaType != "" && !slices.Contains(types, c.StorageMediaType) {
		p.add("--storage-media-type %q invalid, allowed values: %s", c.StorageMediaType, strings.Join(types, ", "))
	}
	if err := store.CheckListenURL(c.ListenClientURL); err != nil {
		*p = append(*p, err)
	}
}
