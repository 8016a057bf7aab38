// Package expr: takes the place of expr/queue.go of github.com/google/nftables when kube-network-policies is built
// for the nodes of the test cluster. A kernel may lack nftables' own "queue" expression (CONFIG_NFT_QUEUE) and still
// have the NFQUEUE target of iptables, which nftables takes through its compatibility layer. What it does is the same.
package expr

import (
	"encoding/binary"
	"errors"

	"github.com/google/nftables/xt"
)

// QueueFlag changes what becomes of packets that the queue does not take.
type QueueFlag uint16

// QueueFlagBypass lets packets pass while no program reads the queue (NFQ_FLAG_BYPASS).
const QueueFlagBypass QueueFlag = 1

// Queue hands packets to the program that reads queue Num.
type Queue struct {
	Num   uint16
	Total uint16
	Flag  QueueFlag
}

// target is struct xt_NFQ_info_v3, padded to 8 bytes.
func (e *Queue) target() *Target {
	info := make(xt.Unknown, 8)
	binary.NativeEndian.PutUint16(info[0:], e.Num)
	binary.NativeEndian.PutUint16(info[2:], max(e.Total, 1))
	binary.NativeEndian.PutUint16(info[4:], uint16(e.Flag))
	return &Target{Name: "NFQUEUE", Rev: 3, Info: &info}
}

func (e *Queue) marshal(fam byte) ([]byte, error) { return e.target().marshal(fam) }

func (e *Queue) marshalData(fam byte) ([]byte, error) { return e.target().marshalData(fam) }

func (e *Queue) unmarshal(byte, []byte) error {
	return errors.New("a queue is written here and never read")
}
