/* Plan trees of October 2025 in Promela, written apart from the deciders: a second opinion on how many situations there
 * are and how short the shortest race is. See docs/concepts/the-race.md; tests/promises/spin/test_spin_tree.py runs it.
 *
 *   spin -a -o2 -DENACTORS=3 -DPLANS=3 -DENDPOINTS=2 tree.pml
 *   gcc -DNOREDUCE -DSAFETY -o pan pan.c && ./pan -E -n
 *
 * -o2 keeps Spin from clearing variables that it takes for dead, which may count fewer states. Each guard is 0 or 1:
 * CONDITIONAL, EXISTS, SPARES, TOLERATES. SKIPS and ROLLBACKS say how often those may happen. With -DASK a caller asks; compile with -DBFS to have the shortest way. A plan's
 * number n is bit n-1 of the sets; every step is a d_step that ends where it began, so a process has no state but its
 * variables. The lock is left out: see the page.
 */
#ifndef ENACTORS
#define ENACTORS 3
#endif
#ifndef PLANS
#define PLANS 3
#endif
#ifndef ENDPOINTS
#define ENDPOINTS 2
#endif
#ifndef CONDITIONAL
#define CONDITIONAL 0
#endif
#ifndef EXISTS
#define EXISTS 0
#endif
#ifndef SPARES
#define SPARES 0
#endif
#ifndef TOLERATES
#define TOLERATES 0
#endif
#ifndef SKIPS
#define SKIPS 0
#endif
#ifndef ROLLBACKS
#define ROLLBACKS 0
#endif

#define BIT(n)		(1 << (n))
#define GONE(plan)	((plan) > 0 && ((deleted << 1) & BIT(plan)))
#define EMPTY(e)	GONE(live[e])
#define WRITTEN_SET	(BIT(written) - 1)

byte written;			/* the newest plan's number */
byte deleted;			/* plans cleaned up */
byte live[ENDPOINTS];		/* where each root alias points; 0: nowhere yet */
byte before[ENDPOINTS];		/* each rollback record: what was live before */

byte skips = SKIPS;		/* how often an endpoint may still be passed over */
byte rollbacks = ROLLBACKS;	/* how often an operator may still go back */

byte at;			/* these two are 0 between steps */
byte first;

active proctype planner()
{
end:	do
	:: d_step { written < PLANS -> written++ }
	od
}

/* One transaction: point endpoint e at the plan, saving what was live before. */
inline turn(e)
{
	if
	:: CONDITIONAL && live[e] >= plan -> todo = todo & ~BIT(e)
	:: !(CONDITIONAL && live[e] >= plan) && EXISTS && GONE(plan) -> todo = todo & ~BIT(e)
	:: else ->
		if
		:: !EMPTY(e) ->
			before[e] = live[e]; live[e] = plan; todo = todo & ~BIT(e)
		:: EMPTY(e) && TOLERATES ->
			before[e] = 0; live[e] = plan; todo = todo & ~BIT(e)
		:: EMPTY(e) && !TOLERATES ->
			skip			/* what was live before can't be saved: tried again for ever */
		fi
	fi
}

inline pass_over(e)
{
	todo = todo & ~BIT(e);
	skips--
}

/* An operator turns endpoint e back to what was live before. */
inline go_back(e)
{
	at = live[e];
	live[e] = before[e];
	before[e] = (GONE(at) -> 0 : at);
	at = 0;
	rollbacks--
}

#define MAY_GO_BACK(e)	(rollbacks > 0 && before[e] > 0 && before[e] != live[e] && !(EXISTS && GONE(before[e])))

active [ENACTORS] proctype enactor()
{
	byte plan;			/* being applied; 0: looking for one */
	byte todo;			/* endpoints still to turn */
	byte spent;			/* plans still to delete */

end:	do
	:: d_step {			/* pick the newest, and check once where it is newer than what is live */
		plan == 0 && written > 0 ->
		at = 0;
		do
		:: at < ENDPOINTS && live[at] < written -> todo = todo | BIT(at); at++
		:: at < ENDPOINTS && live[at] >= written -> at++
		:: else -> break
		od;
		at = 0;
		if
		:: todo != 0 -> plan = written
		:: else -> skip
		fi
	   }
	:: d_step { (todo & BIT(0)) -> turn(0) }
	:: d_step { skips > 0 && (todo & BIT(0)) -> pass_over(0) }
#if ENDPOINTS > 1
	:: d_step { (todo & BIT(1)) -> turn(1) }
	:: d_step { skips > 0 && (todo & BIT(1)) -> pass_over(1) }
#endif
#if ENDPOINTS > 2
	:: d_step { (todo & BIT(2)) -> turn(2) }
	:: d_step { skips > 0 && (todo & BIT(2)) -> pass_over(2) }
#endif
	:: d_step {			/* list what is far older, two plans or more */
		plan > 0 && todo == 0 && spent == 0 ->
		if
		:: plan > 2 -> spent = WRITTEN_SET & ~deleted & (BIT(plan - 2) - 1)
		:: else -> skip
		fi;
		if
		:: spent == 0 -> plan = 0
		:: else -> skip
		fi
	   }
	:: d_step {			/* delete the oldest of those */
		spent != 0 ->
		first = 1;
		do
		:: !((spent << 1) & BIT(first)) -> first++
		:: else -> break
		od;
		at = 0;
		do
		:: at < ENDPOINTS && live[at] != first && before[at] != first -> at++
		:: else -> break
		od;
		if
		:: SPARES && at < ENDPOINTS -> skip	/* referred to */
		:: else -> deleted = deleted | BIT(first - 1)
		fi;
		at = 0;
		first = 0;
		spent = spent & (spent - 1);
		if
		:: spent == 0 -> plan = 0
		:: else -> skip
		fi
	   }
	od
}

#if ROLLBACKS > 0
active proctype operator()
{
end:	do
	:: d_step { MAY_GO_BACK(0) -> go_back(0) }
#if ENDPOINTS > 1
	:: d_step { MAY_GO_BACK(1) -> go_back(1) }
#endif
#if ENDPOINTS > 2
	:: d_step { MAY_GO_BACK(2) -> go_back(2) }
#endif
	od
}
#endif

#ifdef ASK
active proctype caller()
{
end:	do
	:: d_step { EMPTY(0) -> assert(false) }
#if ENDPOINTS > 1
	:: d_step { EMPTY(1) -> assert(false) }
#endif
#if ENDPOINTS > 2
	:: d_step { EMPTY(2) -> assert(false) }
#endif
	od
}
#endif
