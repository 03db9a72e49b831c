package embedded

import "sync/atomic"

// past is how much history the embedded etcd has, if Config.History bounds that.
type past struct {
	most int64         // 0 means no bound
	cut  atomic.Int64  // the revision at which history starts, or is about to
	full chan struct{} // capacity 1: repeated signals add nothing
}

func (p *past) begin(rev int64) {
	p.full = make(chan struct{}, 1)
	p.cut.Store(rev)
}

// note records that the watch has received everything up to rev, and needs no earlier history from etcd.
func (p *past) note(rev int64) {
	if p.most == 0 || rev-p.cut.Load() < 2*p.most {
		return
	}
	p.cut.Store(rev - p.most)
	select {
	case p.full <- struct{}{}:
	default:
	}
}
