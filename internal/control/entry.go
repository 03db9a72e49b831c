package control

import (
	"encoding/json"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Finalizers returns metadata.finalizers of an entry, in any version: metadata is the same in all.
func Finalizers(e *watchcache.Entry) []string {
	raw := watchcache.PartOf(e.JSON(), "metadata", "finalizers")
	var all []string
	if raw == nil || json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}
