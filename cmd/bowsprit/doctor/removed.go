package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"path/filepath"
	"strings"

	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// removedVersions reports stored objects in versions that this release cannot read. It reads the values of an external
// etcd, lists the objects of a running server that serves such a version, or reads the database of a stopped server. If
// an etcd has no gateway, removedVersions reports nothing.
func (e *examination) removedVersions(ctx context.Context) {
	const check = "stored versions"
	find := e.findInDatabase
	switch {
	case len(e.Settings.EtcdServers) > 0 && e.gateway == nil, len(e.Settings.EtcdServers) == 0 && e.dir == "":
		return
	case e.gateway != nil:
		find = e.gateway.find
	case e.client != nil:
		find = e.findInServer
	}
	healthy := true
	for _, in := range kinds.RemovedVersions() {
		for _, plural := range in.Plurals {
			name, err := find(ctx, in, plural)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return // nothing is stored yet
			case err != nil:
				e.add(check, Warning, "make the data readable for this command, and run it again", "not checked: %v", err)
				return
			case name != "":
				healthy = false
				e.add(check, Problem, fmt.Sprintf("with a server of an earlier release than %s: kubectl delete %s.%s.%s "+
					"--all --all-namespaces", in.Release, plural, in.Version, in.Group),
					"%s.%s are stored in version %s, which Kubernetes %s cannot read: %s", plural, in.Group, in.Version,
					in.Release, name)
			}
		}
	}
	if healthy {
		e.add(check, OK, "", "no objects in versions that this release cannot read")
	}
}

// prefixOf returns the prefix of a resource's keys, which ends in a slash.
func prefixOf(root, plural string) string {
	if root == "" {
		root = "/registry"
	}
	return path.Join("/", root, plural) + "/"
}

// findInDatabase reads the database of a stopped server.
func (e *examination) findInDatabase(_ context.Context, in kinds.Removed, plural string) (string, error) {
	below := prefixOf(e.Settings.EtcdPrefix, plural)
	keys, err := e.Find(filepath.Join(e.dir, "etcd"), []string{below}, func(value []byte) bool {
		return convert.StoredVersion(value) == in.APIVersion()
	})
	if err != nil || len(keys) == 0 {
		return "", err
	}
	return several(strings.TrimPrefix(keys[0], below), len(keys)), nil
}

func several(first string, count int) string {
	if count == 1 {
		return first
	}
	return fmt.Sprintf("%s and %d more", first, count-1)
}

// findInServer lists the objects in the removed version, which only a server of an earlier release serves.
func (e *examination) findInServer(ctx context.Context, in kinds.Removed, plural string) (string, error) {
	url := fmt.Sprintf("%s/apis/%s/%s?limit=1", e.host, in.APIVersion(), plural)
	answer, body, err := get(ctx, e.client, url)
	if err != nil || answer.StatusCode == http.StatusNotFound {
		return "", err
	}
	var list struct {
		Metadata struct{ RemainingItemCount int }
		Items    []struct {
			Metadata struct{ Namespace, Name string }
		}
	}
	if answer.StatusCode != http.StatusOK || json.Unmarshal([]byte(body), &list) != nil {
		return "", fmt.Errorf("%s: %s", url, answer.Status)
	}
	if len(list.Items) == 0 {
		return "", nil
	}
	first := list.Items[0].Metadata
	return several(path.Join(first.Namespace, first.Name), 1+list.Metadata.RemainingItemCount), nil
}

// gateway is the JSON API of a member of an external etcd.
type gateway struct {
	client         *http.Client
	server, prefix string
}

const (
	// gatewayPage is the number of values in a response. Only 1 MiB of a response is read.
	gatewayPage = 50
	// gatewayPages bounds the requests for a resource.
	gatewayPages = 400
)

// keyValue is a key and its value in a response of the gateway.
type keyValue struct{ Key, Value []byte }

// find reads the values of a resource, page by page, up to the first one in the removed version.
func (g *gateway) find(ctx context.Context, in kinds.Removed, plural string) (string, error) {
	below := prefixOf(g.prefix, plural)
	from, end := []byte(below), []byte(below[:len(below)-1]+"0") // the key after all keys below the slash
	for range gatewayPages {
		page, err := g.page(ctx, from, end)
		if err != nil {
			return "", err
		}
		for _, kv := range page {
			if convert.StoredVersion(kv.Value) == in.APIVersion() {
				return strings.TrimPrefix(string(kv.Key), below), nil
			}
		}
		if len(page) < gatewayPage {
			return "", nil
		}
		from = append(page[len(page)-1].Key, 0)
	}
	return "", fmt.Errorf("%s: more than %d objects are stored below %s", g.server, gatewayPage*gatewayPages, below)
}

// page returns the first keys from one key on, up to but without end; a nil end means only the key from.
func (g *gateway) page(ctx context.Context, from, end []byte) ([]keyValue, error) {
	request := map[string]any{"key": from, "limit": gatewayPage}
	if end != nil {
		request["range_end"] = end
	}
	ask, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	url := g.server + "/v3/kv/range"
	answer, body, err := do(ctx, g.client, http.MethodPost, url, bytes.NewReader(ask))
	if err != nil {
		return nil, err
	}
	var found struct {
		KVs []keyValue `json:"kvs"`
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	if err := json.Unmarshal([]byte(body), &found); err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return found.KVs, nil
}
