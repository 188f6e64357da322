// Package keylock is what the strategies have in common that keep a hold in one key and change it by scripts: how an acquire, a
// renewal, a release and a resume are sent, what their answers mean, and what is cleaned up behind them. A strategy gives
// the scripts, in a [Layout].
package keylock
