/*
 * Uses up transaction ids and multixact ids faster than transactions could: the pages of
 * pg_xact and pg_subtrans begin as for all, and what lies between their beginnings is passed over.
 */
#include "postgres.h"

#include "access/multixact.h"
#include "access/transam.h"
#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lwlock.h"

PG_MODULE_MAGIC;

#if PG_VERSION_NUM < 170000
#define TransamVariables ShmemVariableCache
#endif

/* Of a page of pg_subtrans: of all pages that begin at certain ids these hold the fewest. */
#define IDS_OF_A_PAGE (BLCKSZ / sizeof(TransactionId))

PG_FUNCTION_INFO_V1(burn_xids);

/* burn_xids(count bigint): the next transaction id is at least so many further on. */
Datum
burn_xids(PG_FUNCTION_ARGS)
{
	uint64		from = U64FromFullTransactionId(GetTopFullTransactionId());
	uint64		to = from + (uint64) PG_GETARG_INT64(0);
	uint64		next = from;

	while (next < to)
	{
		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(XidGenLock, LW_EXCLUSIVE);
		next = U64FromFullTransactionId(TransamVariables->nextXid);
		/* Not over the first id of a page, whose allocation makes the page. */
		if (next % IDS_OF_A_PAGE > FirstNormalTransactionId)
		{
			next |= IDS_OF_A_PAGE - 1;
			TransamVariables->nextXid = FullTransactionIdFromU64(next);
		}
		LWLockRelease(XidGenLock);
		/* An id of a subtransaction that nobody has begun: lost, as those of a crash. */
		next = U64FromFullTransactionId(GetNewTransactionId(true));
	}
	PG_RETURN_INT64((int64) (next - from));
}

PG_FUNCTION_INFO_V1(burn_multixacts);

/* burn_multixacts(count bigint): makes so many multixacts, each of two ids that differ. */
Datum
burn_multixacts(PG_FUNCTION_ARGS)
{
	int64		count = PG_GETARG_INT64(0);
	TransactionId own = GetTopTransactionId();

	MultiXactIdSetOldestMember();
	for (int64 i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		MultiXactIdCreate(own, MultiXactStatusForKeyShare,
						  FirstNormalTransactionId + (TransactionId) (i % 1000000), MultiXactStatusForShare);
	}
	PG_RETURN_INT64(count);
}
