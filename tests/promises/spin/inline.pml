/* The protocol that ships, in Promela, written apart from the deciders: a second opinion on how many situations there
 * are. One endpoint and its marker; enactors that read DNS, then the rows, and send one exact transaction; planners that
 * read head, inputs and DNS, and publish by compare-and-set; the owner's withdrawal; hands that delete the marker; parts
 * that die; copies of transactions. See docs/concepts/exploration.md; tests/promises/spin/test_spin_inline.py runs it.
 *
 *   spin -a -o2 -DENACTORS=2 -DPLANNERS=1 -DINPUTS=1 inline.pml
 *   gcc -DNOREDUCE -DSAFETY -o pan pan.c && ./pan -E -n
 *
 * -o2 keeps Spin from clearing variables that it takes for dead, which may count fewer states. Every step is a d_step
 * that ends where it began, so a process has no state but its variables; those that mean nothing are 0. INPUTS,
 * WITHDRAWALS (at most 1), DELETIONS, CRASHES and COPIES (these two at most 2 together) say how often each may happen.
 *
 * What a number stands for: a generation is its plan's number, since here only a withdrawal raises the epoch, and after
 * it there is no further plan; a content is the number of the input snapshot that asked for it, 0 for none.
 */
#ifndef ENACTORS
#define ENACTORS 2
#endif
#ifndef PLANNERS
#define PLANNERS 1
#endif
#ifndef INPUTS
#define INPUTS 1
#endif
#ifndef WITHDRAWALS
#define WITHDRAWALS 0
#endif
#ifndef DELETIONS
#define DELETIONS 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef COPIES
#define COPIES 0
#endif

#define ROWS		8
#define REFUSALS_MOST	8
#define CODE(g, c, to)	(((g) * 8 + (c)) * 8 + (to))

/* DNS: the marker's generation (0: no marker) and the records' content. What was enacted last, and the highest ever. */
byte marker, records, enacted, highest;

/* The store: the head, the input snapshot, whether a withdrawal waits; each row's snapshot, whether it is a tombstone,
 * and when it was made, counted in holds placed before. */
byte head, inputs = 1, holds;
bit waits;
byte from[ROWS], made[ROWS];
bit tombstone[ROWS];

/* Transactions on their way that nobody waits for, the largest first: what was seen, and the row. 0: none. */
short flight[2];

byte may_change = INPUTS, may_withdraw = WITHDRAWALS, may_delete = DELETIONS, may_crash = CRASHES, may_copy = COPIES;

byte g, c, to;			/* these are 0 between steps */
short code;

/* What a transaction requires: the exact marker and records as seen. With MARKER_ONLY the records don't count, and with
 * UNFENCED nothing does: then the promise below breaks. */
#if defined(UNFENCED)
#define EXACT(seen, beside)	true
#elif defined(MARKER_ONLY)
#define EXACT(seen, beside)	(marker == (seen))
#else
#define EXACT(seen, beside)	(marker == (seen) && records == (beside))
#endif

/* A transaction arrives. never_backward: what is enacted is never older than what was, as far as that is known. */
inline arrive(seen, beside, row)
{
	if
	:: EXACT(seen, beside) ->
		assert(row >= enacted);
		marker = row;
		records = (tombstone[row] -> 0 : from[row]);
		enacted = row;
		highest = (row > highest -> row : highest)
	:: else
	fi
}

inline fly(seen, beside, row)
{
	code = CODE(seen, beside, row);
	if
	:: code >= flight[0] -> flight[1] = flight[0]; flight[0] = code
	:: else -> flight[1] = code
	fi;
	code = 0
}

/* The enactor's own transaction: it is told, and starts over. */
inline commit()
{
	if
	:: EXACT(seen, beside) -> file = row; own = tombstone[row]; refused = 0
	:: else -> refused = (refused < REFUSALS_MOST -> refused + 1 : refused)
	fi;
	arrive(seen, beside, row);
	at = 0; seen = 0; beside = 0; row = 0
}

/* All forgotten but the local file. */
inline die()
{
	at = 0; seen = 0; beside = 0; row = 0; wrote = 0; refused = 0
}

/* A planner starts over. */
inline rest()
{
	at = 0; expected = 0; snapshot = 0; number = 0; when = 0; order = 0; withdraws = 0
}

/* An enactor is about to read DNS (0), to read the rows (1), or to have its transaction carried out (2). It keeps what
 * it saw, the row that it writes, and beside them: what its local file knows, whether from its own withdrawal; whether it
 * ever wrote; how often it was refused since it was last at rest. */
active [ENACTORS] proctype enactor()
{
	byte at, seen, beside, row, file, refused;
	bit own, wrote;

end:	do
	:: d_step { at == 0 ->
		at = 1; seen = marker; beside = records;
		if :: marker > 0 -> file = marker; own = 0 :: else fi }

	/* No row, or what it says stands: at rest. */
	:: d_step { at == 1 && (head == 0 || seen == head) ->
		at = 0; seen = 0; beside = 0; refused = 0 }

	/* Older than the row, or no marker: records without one are always a row's here, so known as ours. */
	:: d_step { at == 1 && head > 0 && seen != head ->
		at = 2; row = head; wrote = 1 }

	:: d_step { at == 2 -> commit() }
	:: d_step { at == 2 && may_copy > 0 ->
		may_copy--;
		g = seen; c = beside; to = row;
		commit();
		fly(g, c, to);
		g = 0; c = 0; to = 0 }
	:: d_step { may_crash > 0 -> may_crash--; die() }
	:: d_step { may_crash > 0 && at == 2 -> may_crash--; fly(seen, beside, row); die() }
	od
}

/* A planner is about to read the head (0), the inputs (1), DNS (2), or to publish (3). */
active [PLANNERS] proctype planner()
{
	byte at, expected, snapshot, number, when;
	bit order, withdraws;

end:	do
	:: d_step { at == 0 -> at = 1; expected = head }
	:: d_step { at == 1 -> at = 2; snapshot = inputs; order = waits }

	/* A plan is due for an order, for a marker above the newest row read, or where other content is asked. */
	:: d_step { at == 2 && (order || expected == 0 || marker > expected ||
			(!tombstone[expected] && from[expected] != snapshot)) ->
		at = 3;
		when = holds;
		number = (marker > expected -> marker : expected) + 1;
		withdraws = order;
		holds = holds + order;
		order = 0 }
	:: d_step { at == 2 && !(order || expected == 0 || marker > expected ||
			(!tombstone[expected] && from[expected] != snapshot)) ->
		rest() }

	:: d_step { at == 3 && head == expected ->
		head = number;
		from[number] = snapshot; tombstone[number] = withdraws; made[number] = when;
		waits = (withdraws -> 0 : waits);
		rest() }
	:: d_step { at == 3 && head != expected -> rest() }
	:: d_step { may_crash > 0 -> may_crash--; rest() }
	od
}

active proctype outside()
{
end:	do
	:: d_step { may_change > 0 -> may_change--; inputs++ }
	:: d_step { may_withdraw > 0 && head > 0 -> may_withdraw--; waits = 1 }
	:: d_step { may_delete > 0 && marker > 0 ->
		may_delete--; marker = 0;
		enacted = (records == 0 -> 0 : enacted) }
	:: d_step { flight[0] > 0 ->
		code = flight[0]; flight[0] = flight[1]; flight[1] = 0;
		g = code / 64; c = (code / 8) % 8; to = code % 8; code = 0;
		arrive(g, c, to);
		g = 0; c = 0; to = 0 }
	:: d_step { flight[1] > 0 ->
		code = flight[1]; flight[1] = 0;
		g = code / 64; c = (code / 8) % 8; to = code % 8; code = 0;
		arrive(g, c, to);
		g = 0; c = 0; to = 0 }
	od
}
